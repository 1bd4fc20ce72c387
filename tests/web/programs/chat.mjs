#!/usr/bin/env node
// The AI SDK's own chat engine against a running server: an unmodified client, but for the token.
//
// Standard input is {sdk, ai, api, token, chatId, prompt?, resume?, acp?, answers?,
// choices?}: `sdk` is
// where the SDK is installed. What is asked is answered with the next of `answers`, or, as release 5
// has no approvals, with the next option of `choices`. Prints {messages, status, error, requests}.

import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const scenario = JSON.parse(readFileSync(0, 'utf8'));
const built = `${scenario.sdk}/ai${scenario.ai}/dist/index`;
const module = pathToFileURL(existsSync(`${built}.mjs`) ? `${built}.mjs` : `${built}.js`);
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } =
  await import(module);

let finished = () => {};
let requests = 0;

class Chat extends AbstractChat {
  constructor(init) {
    const state = {
      status: 'ready',
      messages: scenario.messages ?? [],
      error: undefined,
      pushMessage: message => state.messages.push(message),
      popMessage: () => state.messages.pop(),
      replaceMessage: (index, message) => { state.messages[index] = structuredClone(message); },
      snapshot: value => structuredClone(value),
    };
    super({ ...init, state });
  }
}

const counted = (url, options) => {
  requests += 1;
  return fetch(url, options);
};

const chat = new Chat({
  id: scenario.chatId,
  transport: new DefaultChatTransport({
    api: scenario.api,
    headers: { authorization: `Bearer ${scenario.token}` },
    body: scenario.acp ? { acp: scenario.acp } : {},
    fetch: counted,
  }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  onFinish: () => finished(),
});

const asked = () => chat.messages
  .flatMap(message => message.parts)
  .filter(part => part.state === 'approval-requested');

if (scenario.resume) await chat.resumeStream();
else await chat.sendMessage({ text: scenario.prompt });
for (const { body, ...answer } of scenario.answers ?? []) {
  const [part] = asked();
  if (!part || chat.error) break;
  const ended = new Promise(resolve => { finished = resolve; });
  await chat.addToolApprovalResponse({ id: part.approval.id, ...answer, options: { body } });
  await ended;
}
for (const optionId of scenario.choices ?? []) {
  const part = chat.messages.at(-1).parts.findLast(({ type }) => type === 'data-acp-permission');
  if (!part || chat.error) break;
  const permission = { requestId: part.data.requestId, optionId };
  await chat.sendMessage(undefined, { body: { acp: { permission } } });
}
await new Promise(resolve => setTimeout(resolve, 50));
const error = chat.error?.message ?? null;
process.stdout.write(JSON.stringify({ messages: chat.messages, status: chat.status, error, requests }));
process.exit(0);
