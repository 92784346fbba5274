// A node agent on the official SDK, which says what it is asked for: `flood COUNT SIZE` in chunks
// of SIZE characters, each sent as agents send them, anything else in one.
//   node node_agent.mjs SDK
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const acp = await import(pathToFileURL(`${process.argv[2]}/dist/v1/stable/acp.js`));
const { methods } = acp;
const WORDS = "the quick brown fox jumps over the lazy dog and runs on ";

function say(client, sessionId, text) {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  return client.notify(methods.client.session.update, { sessionId, update });
}

const agent = acp
  .agent({ name: "bench" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {},
    authMethods: [],
  }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: "b" }))
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const [word, count, size] = params.prompt.at(-1).text.split(" ");
    const text = word === "flood" ? WORDS.repeat(size / WORDS.length + 1).slice(0, size) : "ok";
    for (let left = word === "flood" ? Number(count) : 1; left > 0; left -= 1) {
      await say(client, params.sessionId, text);
    }
    return { stopReason: "end_turn" };
  });

agent.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
