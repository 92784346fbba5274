// A conductor of another maker (npm: @thinkwell/conductor) as an agent on stdio:
// node conductor.mjs PACKAGE '["proxy",...]' '["agent",...]'
import { createInterface } from "node:readline";

const [, , folder, proxy, agent] = process.argv;
const { Conductor, fromConnectors, StdioConnector } = await import(`${folder}/dist/index.js`);
const spawned = (argv) => {
  const [command, ...args] = JSON.parse(argv);
  return new StdioConnector({ command, args });
};
const conductor = new Conductor({
  instantiator: fromConnectors(spawned(agent), [spawned(proxy)]),
  mcpBridgeMode: "disabled",
});
async function* lines() {
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line);
}
await conductor.connect({
  connect: async () => ({
    send: (message) => process.stdout.write(`${JSON.stringify(message)}\n`),
    messages: lines(),
    close: async () => {},
  }),
});
await conductor.shutdown();
