// The TypeScript SDK as an ACP client: one session, a turn for each PROMPT, the outcome on stdout.
//   node typescript_sdk.mjs SDK META PROMPT... -- AGENT...
// SDK is the package's directory, META session/new's `_meta` as JSON. Permissions are given by the
// first option that allows.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const split = process.argv.indexOf("--");
const [sdk, meta, ...prompts] = process.argv.slice(2, split);
const [command, ...args] = process.argv.slice(split + 1);
const acp = await import(pathToFileURL(`${sdk}/dist/v1/stable/acp.js`));
const { methods } = acp;

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((done) => agent.on("exit", (code, signal) => done(signal ?? code)));
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

let text = "";
const kinds = new Set();
const client = acp
  .client({ name: "tests" })
  .onNotification(methods.client.session.update, ({ params }) => {
    const { update } = params;
    kinds.add(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") text += update.content.text;
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find((item) => item.kind.startsWith("allow"));
    return { outcome: { outcome: "selected", optionId } };
  });

const stop = [];
await client.connectWith(stream, async (ctx) => {
  await ctx.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const session = await ctx.request(methods.agent.session.new, {
    cwd: process.cwd(),
    mcpServers: [],
    _meta: JSON.parse(meta),
  });
  for (const prompt of prompts) {
    const turn = { sessionId: session.sessionId, prompt: [{ type: "text", text: prompt }] };
    stop.push((await ctx.request(methods.agent.session.prompt, turn)).stopReason);
  }
});
agent.stdin.end();
const exit = await ended;
console.log(JSON.stringify({ text, stop, permission: kinds.has("tool_call"), exit }));
process.exit(0);
