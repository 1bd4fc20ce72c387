#!/usr/bin/env node
// Judges UI message streams with the parser and the reducer of the AI SDK itself.
//
//   node check.mjs [--ai 6|7] FILE | -     one stream: prints the message, exit code 1 if it is bad
//   node check.mjs --batch                 one case a line on standard input, one verdict a line out
//
// A case is {ai, streams: [text, …], answers?: [{approvalId: boolean}, …]}: `answers[n]` is what the
// user says behind stream n, before the next one goes on with the same message. Or it is
// {ai, messages: […]}, which must be messages that the SDK takes.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const sdks = {};
const sdk = async release => (sdks[release] ??= await import(`ai${release}`));

const ENDS = ['finish', 'abort', 'error'];

async function parsed(ai, text) {
  const fetch = async () => new Response(text);
  const transport = new ai.DefaultChatTransport({ api: 'http://stream.invalid/', fetch });
  return transport.sendMessages({ chatId: 'chat', trigger: 'submit-message', messages: [] });
}

/** Reads one stream into a message, which may go on from another. */
async function read(ai, text, message, problems) {
  const types = [];
  let told = 0;
  const watch = new TransformStream({
    transform(chunk, out) {
      types.push(chunk.type);
      if (chunk.type === 'error') told += 1;
      for (const [field, value] of Object.entries(chunk))
        if (value === null && !['input', 'output', 'data'].includes(field))
          problems.push(`${chunk.type} has a null ${field}`);
      out.enqueue(chunk);
    },
  });
  const errors = [];
  const stream = (await parsed(ai, text)).pipeThrough(watch);
  const onError = error => errors.push(String(error));
  for await (const snapshot of ai.readUIMessageStream({ message, stream, onError })) message = snapshot;
  if (errors.length > told) problems.push(...errors);
  if (types[0] !== 'start') problems.push(`begins with ${types[0]}`);
  if (!ENDS.includes(types.at(-1))) problems.push(`ends with ${types.at(-1)}`);
  if (!text.endsWith('data: [DONE]\n\n')) problems.push('has no [DONE] at its end');
  return { message, types };
}

const isTool = part => part.type === 'dynamic-tool' || part.type.startsWith('tool-');

function checkParts(parts, problems) {
  const seen = new Set();
  for (const part of parts) {
    if (part.state === 'streaming' || part.state === 'input-streaming')
      problems.push(`${part.type} ${part.toolCallId ?? ''} was left open`);
    const key = isTool(part) ? `tool ${part.toolCallId}` : part.id && `${part.type} ${part.id}`;
    if (key && seen.has(key)) problems.push(`${key} is there twice`);
    if (key) seen.add(key);
  }
}

/** A page sends its messages back, so they must be valid for the SDK's own servers. */
async function checkValid(ai, message, problems) {
  await checkAllValid(ai, [JSON.parse(JSON.stringify(message))], problems);
}

async function checkAllValid(ai, messages, problems) {
  const verdict = await ai.safeValidateUIMessages({ messages });
  if (!verdict.success) problems.push(verdict.error.message.slice(0, 1500));
}

/** What `addToolApprovalResponse` does to the message. */
function answered(message, answers) {
  const parts = message.parts.map(part =>
    part.state === 'approval-requested' && part.approval.id in answers
      ? { ...part, state: 'approval-responded',
          approval: { ...part.approval, approved: answers[part.approval.id] } }
      : part);
  return { ...message, parts };
}

async function judge({ ai: release, streams = [], answers = [], messages }) {
  const ai = await sdk(release);
  const sends = message =>
    ai.lastAssistantMessageIsCompleteWithApprovalResponses({ messages: [message] });
  const problems = [];
  const chunks = [];
  let message;
  if (messages) await checkAllValid(ai, messages, problems);
  for (const [number, text] of streams.entries()) {
    const found = await read(ai, text, message, problems);
    message = found.message;
    chunks.push(found.types);
    if (!message) continue;
    checkParts(message.parts, problems);
    await checkValid(ai, message, problems);
    if (sends(message)) problems.push('would be sent again without an answer');
    if (number === streams.length - 1 || !answers[number]) continue;
    const asked = message.parts.filter(part => part.state === 'approval-requested');
    message = answered(message, answers[number]);
    const isComplete = asked.length && asked.every(part => part.approval.id in answers[number]);
    if (isComplete && !sends(message)) problems.push('would not be sent after the answer');
  }
  return { problems, message, chunks };
}

async function batch() {
  for await (const line of createInterface({ input: process.stdin })) {
    const verdict = await judge(JSON.parse(line)).catch(error => ({ problems: [String(error)] }));
    process.stdout.write(`${JSON.stringify(verdict)}\n`);
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ai: { type: 'string', default: '7' }, batch: { type: 'boolean', default: false } },
});
if (values.batch) {
  await batch();
} else {
  const text = readFileSync(positionals[0] === '-' ? 0 : positionals[0], 'utf8');
  const { problems, message } = await judge({ ai: Number(values.ai), streams: [text] });
  console.log(JSON.stringify({ problems, message }, null, 2));
  process.exitCode = problems.length ? 1 : 0;
}
