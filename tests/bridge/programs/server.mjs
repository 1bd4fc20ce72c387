// The official SDK's server over HTTP/2 alone, with TLS: an agent that asks once and answers.
//   server.mjs CERTIFICATE
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import * as acp from "@agentclientprotocol/sdk";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";

const pem = readFileSync(process.argv[2]);
const versions = new Set();
const agent = acp
  .agent({ name: "over-http-2" })
  .onRequest(acp.methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: true },
  }))
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: "s-1" }))
  .onRequest(acp.methods.agent.session.load, () => ({}))
  .onRequest(acp.methods.agent.session.prompt, async (ctx) => {
    const { sessionId } = ctx.params;
    const { outcome } = await ctx.client.request(acp.methods.client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: "t-1", title: "Look" },
      options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
    });
    const text = `${outcome.optionId} over HTTP/${[...versions].join()}`;
    const content = { type: "text", text };
    const update = { sessionUpdate: "agent_message_chunk", content };
    await ctx.client.notify(acp.methods.client.session.update, { sessionId, update });
    return { stopReason: "end_turn" };
  });
const acpServer = new AcpServer({ agent });

// The SDK's own adapter is for HTTP/1.1: it trips over the pseudo-headers of HTTP/2.
async function handle(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const headers = Object.entries(request.headers).filter(([name]) => !name.startsWith(":"));
  const answer = await acpServer.handleRequest(
    new Request(`https://127.0.0.1${request.url}`, {
      method: request.method,
      headers: Object.fromEntries(headers),
      body: request.method === "POST" ? Buffer.concat(chunks) : undefined,
    }),
  );
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) {
    if (name !== "connection") response.setHeader(name, value);
  }
  response.setHeader("Set-Cookie", "node=seven; Path=/");
  response.flushHeaders();
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}

const server = createSecureServer({ key: pem, cert: pem }, (request, response) => {
  versions.add(request.httpVersion);
  handle(request, response).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify(server.address().port)));
process.stdin.resume().on("end", () => process.exit(0));
