// The column of the official TypeScript SDK. It runs from where the SDK is installed.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [command, ...args] = process.argv.slice(2);
const [scene, count] = args;
const expected = { updates: Number(count), mix: Number(count), frame: 1, roundtrips: 0 }[scene];
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout), {
  maxMessageBytes: 64 * 1024 * 1024, // its default is 32 MiB
});

let updates = 0;
let chars = 0;
let finished;
const handled = new Promise((resolve) => (finished = resolve));
if (expected === 0) finished();

const client = acp
  .client({ name: "bench" })
  .onNotification(acp.methods.client.session.update, async ({ params: { update } }) => {
    if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text")
      chars += update.content.text.length;
    if (++updates === expected) finished();
  })
  .onRequest(acp.methods.client.fs.readTextFile, async () => ({ content: "hello" }));

await client.connectWith(stream, async (ctx) => {
  await ctx.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, {
    cwd: "/",
    mcpServers: [],
  });
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const prompt = [{ type: "text", text: "go" }];
  await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt });
  await handled; // the prompt may return before the updates are handled
  report(process.cpuUsage(cpu), performance.now() - wall);
});
agent.stdin.end();

function report(cpu, wall) {
  const cpu_s = (cpu.user + cpu.system) / 1e6;
  console.log(JSON.stringify({ updates, chars, cpu_s, wall_s: wall / 1e3, peak_mb: peakMb() }));
}

function peakMb() {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
  } catch {
    return process.resourceUsage().maxRSS / 1024;
  }
}
