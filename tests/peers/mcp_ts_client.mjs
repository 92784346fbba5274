// The TypeScript SDKs' clients, as node agents embed them, driven through one story.
//
//     node mcp_ts_client.mjs sdk|client MODULES URL TOOL
//
// `sdk` is @modelcontextprotocol/sdk (1.x), `client` @modelcontextprotocol/client (2.x). Prints one
// line of JSON: what it saw.

import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [which, modules, url, tool] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(modules, "@modelcontextprotocol", path)));

async function parts() {
  if (which === "client") {
    const { Client, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
    return { Client, StreamableHTTPClientTransport };
  }
  const { Client } = await load("sdk/dist/esm/client/index.js");
  const { StreamableHTTPClientTransport } = await load("sdk/dist/esm/client/streamableHttp.js");
  return { Client, StreamableHTTPClientTransport };
}

const { Client, StreamableHTTPClientTransport } = await parts();
const client = new Client({ name: "ts", version: "1" }, { capabilities: {} });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const seen = { server: client.getServerVersion() };
seen.tools = (await client.listTools()).tools.map((found) => found.name);

const progress = [];
const call = (name, args, options) =>
  which === "client"
    ? client.callTool({ name, arguments: args }, options)
    : client.callTool({ name, arguments: args }, undefined, options);

seen.result = await call(tool, { message: "hé" });
seen.long = await call(
  "trigger-long-running-operation",
  { duration: 0.4, steps: 4 },
  { onprogress: (told) => progress.push(told.progress) },
);
seen.progress = progress;
seen.unknown = await call("no-such-tool", {}).then(
  (found) => found,
  (error) => ({ code: error.code }),
);

const stop = new AbortController();
setTimeout(() => stop.abort("enough"), 200);
seen.cancelled = await call(
  "trigger-long-running-operation",
  { duration: 30, steps: 3 },
  { signal: stop.signal },
).then(
  () => "answered",
  () => "cancelled",
);
seen.after = await call(tool, { message: "still here" });
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
