#!/usr/bin/env node
// The SDK's own chat engine, talking to whoever holds the other end of its standard streams.
//
// The first line in is the scenario: {ai, chatId, prompt, answers: [{approved, reason?, body?}, …]}.
// Each request goes out as {method, path, body}, its answer comes in as {status, body}. What is asked
// is answered with the next of `answers`. The last line out is {messages, status, error}.

import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const tell = value => process.stdout.write(`${JSON.stringify(value)}\n`);

const scenario = await next();
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } =
  await import(`ai${scenario.ai}`);

let quiet = () => {};
let requests = 0;

async function relay(url, { method, body }) {
  requests += 1;
  tell({ method, path: new URL(url).pathname, body: body === undefined ? null : JSON.parse(body) });
  const answer = await next();
  const headers = { 'content-type': 'text/event-stream' };
  return new Response(answer.status === 204 ? null : answer.body, { status: answer.status, headers });
}

class Chat extends AbstractChat {
  constructor(init) {
    const state = {
      status: 'ready',
      messages: [],
      error: undefined,
      pushMessage: message => state.messages.push(message),
      popMessage: () => state.messages.pop(),
      replaceMessage: (index, message) => { state.messages[index] = structuredClone(message); },
      snapshot: value => structuredClone(value),
    };
    super({ ...init, state });
  }
}

const chat = new Chat({
  id: scenario.chatId,
  transport: new DefaultChatTransport({ api: 'http://chat.invalid/api/chat', fetch: relay }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  onFinish: () => quiet(),
});

const asked = () => chat.messages
  .flatMap(message => message.parts)
  .filter(part => part.state === 'approval-requested');

await chat.sendMessage({ text: scenario.prompt });
for (const { body, ...answer } of scenario.answers) {
  const [part] = asked();
  if (!part || chat.error) break;
  const before = requests;
  const finished = new Promise(resolve => { quiet = resolve; });
  await chat.addToolApprovalResponse({ id: part.approval.id, ...answer, options: { body } });
  if (asked().length === 0 || requests > before) await finished;
}
// Whatever the chat would send by itself, it sends before this is over.
await new Promise(resolve => setTimeout(resolve, 50));
tell({ messages: chat.messages, status: chat.status, error: chat.error?.message ?? null, requests });
process.exit(0);
