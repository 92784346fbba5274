// The OpenAI SDK for node against a scripted model: `openai_node.mjs PACKAGE BASE_URL`, as JSON.
// PACKAGE is the SDK's directory (install.py's node-model).
import { pathToFileURL } from "node:url";
import { randomBytes } from "node:crypto";

const [sdk, baseURL] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(`${sdk}/index.mjs`));
const client = new OpenAI({ baseURL, apiKey: "dummy", maxRetries: 0 });
const tools = [
  { type: "function", function: { name: "echo", parameters: { type: "object", properties: {} } } },
];
const user = (content) => ({ role: "user", content });
const chat = (messages, more = {}) =>
  client.chat.completions.create({ model: "scripted", messages, ...more });

const steps = {
  async whole() {
    const { choices } = await chat([user("SAY hello é")]);
    return [choices[0].message.content, choices[0].finish_reason];
  },
  async streamed() {
    let text = "";
    let chunks = 0;
    for await (const chunk of await chat([user("SLOW 0.5")], { stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? "";
      chunks += 1;
    }
    return [text.trim().split(/\s+/).at(-1), chunks > 3];
  },
  async aborted() {
    const stream = await chat([user("SLOW 30")], { stream: true });
    for await (const _ of stream) break;
    return "left";
  },
  async tool_loop() {
    const prompt = user('USE_TOOL echo {"message": "x"}');
    const { choices } = await chat([prompt], { tools });
    const message = choices[0].message;
    const [call] = message.tool_calls;
    const result = { role: "tool", tool_call_id: call.id, content: "echoed" };
    const said = await chat([prompt, message, result], { tools });
    const { name, arguments: given } = call.function;
    return [message.content, name, JSON.parse(given), said.choices[0].message.content];
  },
  async null_history() {
    const history = [user("x"), { role: "assistant", content: null }, user("SAY on")];
    return (await chat(history)).choices[0].message.content;
  },
  async surrogate() {
    const history = [user("x \ud83d y"), { role: "assistant", content: null }, user("SAY on")];
    return (await chat(history)).choices[0].message.content;
  },
  async image() {
    const url = `data:image/png;base64,${randomBytes(7 << 20).toString("base64")}`;
    const parts = [{ type: "text", text: "SAY seen" }, { type: "image_url", image_url: { url } }];
    return (await chat([user(parts)])).choices[0].message.content;
  },
  async failure() {
    return chat([user(`FAIL 503 ${process.pid}`)]);
  },
};

const outcomes = {};
for (const [name, step] of Object.entries(steps)) {
  try {
    outcomes[name] = await step();
  } catch (error) {
    outcomes[name] = [error.constructor.name, error.status ?? null, error.message];
  }
}
console.log(JSON.stringify(outcomes));
