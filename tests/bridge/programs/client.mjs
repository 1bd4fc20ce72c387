// The official SDK's client over WebSocket or HTTP: one whole turn, told as a line of JSON.
//   client.mjs ws|http URL TOKEN CWD
import { WebSocket } from "ws";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [way, url, token, cwd] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const stream =
  way === "ws"
    ? createWebSocketStream(url, { WebSocket, headers })
    : createHttpStream(url, { headers });
const told = { kinds: [], text: "", asked: [] };

function updated({ update }) {
  told.kinds.push(update.sessionUpdate);
  if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
    told.text += update.content.text;
  }
}

function permitted({ options }) {
  told.asked.push(options.map((option) => option.kind));
  const refused = options.find((option) => option.kind === "reject_once");
  return { outcome: { outcome: "selected", optionId: refused.optionId } };
}

await acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, (ctx) => permitted(ctx.params))
  .onNotification(acp.methods.client.session.update, (ctx) => updated(ctx.params))
  .connectWith(stream, async (ctx) => {
    const welcome = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    const session = await ctx.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    const result = await ctx.request(acp.methods.agent.session.prompt, {
      sessionId: session.sessionId,
      prompt: [{ type: "text", text: "hello" }],
    });
    told.agent = welcome.agentInfo?.name;
    told.stopReason = result.stopReason;
  });
await stream.writable.close().catch(() => {});
console.log(JSON.stringify(told));
process.exit(0);
