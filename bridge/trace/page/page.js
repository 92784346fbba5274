"use strict";
// The page: a windowed list of events, a filter, the chosen event's message. All data is in the page.
const ROW = 22;
const SLACK = 12;
const LANE = 44;
const LANES = ["host", "bridge", "agent", "model", "MCP"];
const FROM_TO = {
  host: [0, 1], client: [0, 1], conductor: [0, 1], acp: [1, 2], model: [2, 3], mcp: [1, 4],
};
const KEYS = ["line", "t", "ch", "dir", "session", "n", "kind", "role", "method", "id", "update",
  "failed", "partner", "latency", "sid", "tool", "words", "content", "size", "run", "turn", "flow"];
const $ = (id) => document.getElementById(id);
const grid = $("grid"), space = $("space"), detail = $("detail"), filterBox = $("filter");

const events = [];
const byLine = new Map();
let shown = [];
let picked = -1;
let wanted = () => true;
const sessions = new Set();

function take(rows, findings) {
  for (const row of rows) {
    const event = { findings: [] };
    KEYS.forEach((key, index) => { event[key] = row[index]; });
    event.content ??= "";
    if (event.session != null) sessions.add(event.session);
    events.push(event);
    byLine.set(event.line, event);
    const partner = byLine.get(event.partner);
    if (partner) Object.assign(partner, { partner: event.line, latency: event.latency });
  }
  // A line that cannot be read has no row: what is found on it stands on the one before.
  for (const finding of findings) {
    const event = byLine.get(finding.line) ?? events.findLast((other) => other.line < finding.line);
    (event ?? events[0])?.findings.push(finding);
  }
}

// Which rows there are

function arrange(quiet = false) {
  const before = shown[picked]?.event;
  const collapse = $("collapse").checked;
  const runs = new Map();
  shown = [];
  for (const event of events) {
    if (!wanted(event)) continue;
    const row = collapse && event.run >= 0 ? runs.get(event.run) : undefined;
    if (row) { row.members.push(event); continue; }
    const fresh = { event, members: [event] };
    if (event.run >= 0) runs.set(event.run, fresh);
    shown.push(fresh);
  }
  space.style.height = `${shown.length * ROW}px`;
  picked = before ? shown.findIndex((row) => row.members.includes(before)) : -1;
  if (!quiet) count();
  draw(true);
}

function count(more = "") {
  const faults = events.reduce((sum, event) => sum + event.findings.length, 0);
  say(`${many(shown.length, "row")} of ${many(events.length, "event")}; ${many(faults, "finding")}${more}`);
}

const many = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;

function say(words, wrong = false) {
  $("status").textContent = words;
  $("status").classList.toggle("wrong", wrong);
  filterBox.setAttribute("aria-invalid", wrong);
}

// Drawing what can be seen

const nodes = new Map();
function draw(all = false) {
  const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - SLACK);
  const last = Math.min(shown.length, Math.ceil((grid.scrollTop + grid.clientHeight) / ROW) + SLACK);
  for (const [index, node] of nodes) {
    if (all || index < first || index >= last) { node.remove(); nodes.delete(index); }
  }
  const fresh = document.createDocumentFragment();
  for (let index = first; index < last; index += 1) {
    if (nodes.has(index)) continue;
    const node = rowNode(shown[index], index);
    nodes.set(index, node);
    fresh.append(node);
  }
  space.append(fresh);
  grid.setAttribute("aria-activedescendant", nodes.has(picked) ? `row-${picked}` : "");
}
let drawing = false;
grid.addEventListener("scroll", () => {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; draw(); });
}, { passive: true });
new ResizeObserver(() => draw()).observe(grid);

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

function rowNode(row, index) {
  const { event, members } = row;
  const node = make("div", `row ${event.turn >= 0 ? `turn${event.turn % 2}` : ""}`);
  node.id = `row-${index}`;
  node.setAttribute("role", "option");
  node.setAttribute("aria-posinset", index + 1);
  node.setAttribute("aria-setsize", shown.length);
  node.setAttribute("aria-selected", index === picked);
  node.style.top = `${index * ROW}px`;
  const count = members.length;
  const words = count > 1 ? `×${count} ${runText(members)}` : event.words;
  const name = event.update || event.method || event.role;
  const since = count > 1 ? members[count - 1].t - event.t : event.role === "response" ? event.latency : null;
  node.append(make("span", "num", event.line), make("span", "time", event.t.toFixed(3)), track(event));
  node.append(make("span", "rid", event.id && event.id !== "null" ? `#${event.id.replaceAll('"', "")}` : ""));
  node.append(make("span", "lat", since == null ? "" : duration(since)), make("span", "", "\u2002"));
  if (sessions.size > 1 && event.session) node.append(make("span", "sess", event.session));
  const faults = members.flatMap((member) => member.findings);
  if (faults.length) {
    const worst = ["error", "warning", "info"].find((level) => faults.some((fault) => fault.severity === level));
    node.append(make("span", `flag ${worst}`, faults.length > 1 ? `${faults[0].rule} +${faults.length - 1}` : faults[0].rule));
  }
  node.append(make("span", `name ${event.failed ? "bad" : ""}`, name), make("span", "words", words));
  const way = { "→": "away from the host", "←": "towards the host", "·": "" }[event.flow];
  node.setAttribute("aria-label", [`line ${event.line}`, `${event.t.toFixed(3)} seconds`, event.ch, event.session,
    way, event.role, name, words.slice(0, 200), ...faults.map((fault) => `${fault.severity} ${fault.rule}`)]
    .filter(Boolean).join(", "));
  node.addEventListener("mousedown", () => pick(index));
  return node;
}

function runText(members) {
  let text = "";
  for (const member of members) {
    if (text.length > 300) break;
    text += member.words.replace(/^"|"$/g, "");
  }
  return `"${text}"`;
}

function track(event) {
  const node = make("span", "track");
  const pair = FROM_TO[event.ch];
  const kind = pair ? event.ch : "other";
  if (pair && event.flow !== "·") {
    const arrow = make("span", `arrow ${kind} ${event.flow === "→" ? "right" : "left"}`);
    arrow.style.left = `${LANE / 2 + pair[0] * LANE}px`;
    arrow.style.width = `${(pair[1] - pair[0]) * LANE}px`;
    node.append(arrow);
  } else {
    const dot = make("span", `dot ${kind}`);
    const lane = pair ? pair[1] : { stderr: 2, process: 2 }[event.ch] ?? 1;
    dot.style.left = `${LANE / 2 + lane * LANE}px`;
    node.append(dot);
  }
  return node;
}

function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  return seconds < 1 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toFixed(2)} s`;
}

// Choosing

function pick(index, show = true) {
  if (!shown.length) return;
  const old = nodes.get(picked);
  if (old) old.setAttribute("aria-selected", "false");
  picked = Math.max(0, Math.min(shown.length - 1, index));
  if (show) {
    const top = picked * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + ROW > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + ROW - grid.clientHeight;
  }
  draw();
  const node = nodes.get(picked);
  if (node) node.setAttribute("aria-selected", "true");
  tell(shown[picked]);
}

function pickLine(line) {
  const index = shown.findIndex((row) => row.members.some((member) => member.line === line));
  if (index >= 0) { pick(index); return; }
  filterBox.value = "";
  filtered();
  pick(shown.findIndex((row) => row.members.some((member) => member.line === line)));
}

function tell({ event, members }) {
  detail.replaceChildren(make("h2", event.failed ? "bad" : "", event.update || event.method || event.role));
  const faults = members.flatMap((member) => member.findings);
  if (faults.length) {
    const list = make("ul");
    for (const fault of faults) {
      const item = make("li", fault.severity);
      item.append(make("strong", "", `${fault.severity}: ${fault.rule}`), ` ${fault.words} (${fault.spec})`);
      list.append(item);
    }
    detail.append(list);
  }
  const table = make("table");
  const add = (name, value) => {
    if (value === null || value === undefined || value === "") return;
    const line = make("tr");
    line.append(make("th", "", name), make("td", "", value));
    table.append(line);
  };
  add("line", members.length > 1 ? `${event.line} to ${members.at(-1).line} (${members.length})` : event.line);
  add("time", `${event.t.toFixed(6)} s`);
  add("channel", [event.ch, event.session, event.n].filter((part) => part !== null && part !== "").join(" · "));
  add("is", `${event.role} ${event.flow === "→" ? "away from the host" : event.flow === "←" ? "towards the host" : ""}`);
  add("id", event.id);
  add("session", event.sid);
  add("latency", event.latency == null ? "" : duration(event.latency));
  add("size", `${members.reduce((sum, member) => sum + member.size, 0)} bytes`);
  detail.append(table);
  if (event.partner) {
    const button = make("button", "", `${event.role === "request" ? "Response" : "Request"}: line ${event.partner}`);
    button.addEventListener("click", () => pickLine(event.partner));
    detail.append(button);
  }
  const text = members.length > 1 ? members.map((member) => member.words.replace(/^"|"$/g, "")).join("") : event.content;
  detail.append(message(text, members.length > 1));
  if (members.length > 1) detail.append(make("p", "hint", `The first chunk in full:`), message(event.content, false));
  detail.scrollTop = 0;
}

function message(text, plain) {
  const node = make("pre");
  let value;
  if (!plain) { try { value = JSON.stringify(JSON.parse(text), null, 2); } catch { value = undefined; } }
  if (value === undefined) { node.textContent = text; return node; }
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null|-?\d[\d.eE+-]*)\b/g;
  let at = 0;
  for (let match = token.exec(value); match && at < 200000; match = token.exec(value)) {
    node.append(value.slice(at, match.index));
    node.append(make("span", match[2] ? "k" : match[1] ? "s" : "v", match[1] || match[3]));
    if (match[2]) node.append(match[2]);
    at = match.index + match[0].length;
  }
  node.append(value.slice(at));
  return node;
}

// Keys, filter, buttons

function nextFault(step) {
  for (let index = picked + step; index >= 0 && index < shown.length; index += step) {
    if (shown[index].members.some((member) => member.findings.length)) { pick(index); return; }
  }
  say(`no ${step > 0 ? "further" : "earlier"} finding`);
}

const page = () => Math.max(1, Math.floor(grid.clientHeight / ROW) - 1);
const MOVES = {
  ArrowDown: () => pick(picked + 1), j: () => pick(picked + 1), ArrowUp: () => pick(picked - 1), k: () => pick(picked - 1),
  PageDown: () => pick(picked + page()), PageUp: () => pick(picked - page()), Home: () => pick(0), End: () => pick(shown.length - 1),
  Enter: () => { if (picked >= 0) detail.focus(); },
  p: () => { const partner = shown[picked]?.event.partner; if (partner) pickLine(partner); },
  n: () => nextFault(1), N: () => nextFault(-1),
  c: () => { $("collapse").checked = !$("collapse").checked; arrange(); },
};
document.addEventListener("keydown", (press) => {
  // Wherever no other element takes keys: whoever has just opened the page need not look for the rows.
  if (document.activeElement !== grid && document.activeElement !== document.body) return;
  if (press.ctrlKey || press.metaKey || press.altKey || !MOVES[press.key]) return;
  press.preventDefault();
  grid.focus();
  MOVES[press.key]();
});
detail.addEventListener("keydown", (press) => { if (press.key === "Escape") grid.focus(); });
document.addEventListener("keydown", (press) => {
  if (press.key === "/" && document.activeElement !== filterBox) { press.preventDefault(); filterBox.focus(); }
});
filterBox.addEventListener("keydown", (press) => {
  if (press.key === "Escape" || press.key === "Enter") { press.preventDefault(); filtered(); grid.focus(); }
});
function filtered() {
  try { wanted = Filter.compile(filterBox.value); } catch (error) { say(error.message, true); return; }
  arrange();
}
let typing = 0;
filterBox.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(filtered, 120); });
$("collapse").addEventListener("change", () => arrange());
$("faults").addEventListener("click", () => { nextFault(1); grid.focus(); });
$("help").addEventListener("click", () => {
  $("keys").hidden = !$("keys").hidden;
  $("help").setAttribute("aria-expanded", !$("keys").hidden);
});
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = (theme) => { document.documentElement.dataset.theme = theme; };
paint(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => paint(dark.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("lanes").append(...LANES.map((lane) => make("span", "", lane)));

const data = JSON.parse($("trace").textContent);
take(data.rows, data.findings);
arrange();

// A live page: what is new, as soon as it is there

const QUIET_MS = 3000;
async function follow() {
  let told = 0, later = 0, found = 0;
  for (;;) {
    let got;
    try {
      got = await (await fetch(`rows?after=${events.length}&findings=${found}`)).json();
    } catch {
      say("the server has ended; this is what came", true);
      return;
    }
    if (!got.rows.length && !got.findings.length) continue;
    const atEnd = grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 2 * ROW;
    take(got.rows, got.findings);
    found += got.findings.length;
    arrange(true);
    if (atEnd) grid.scrollTop = grid.scrollHeight;
    // A reader reads out each word that changes here: not with every row.
    const last = got.findings.at(-1);
    if (last || performance.now() - told > QUIET_MS || !told) {
      told = performance.now();
      count(last ? `; new: ${last.severity} ${last.rule} on line ${last.line}` : "");
    } else if (!later) {
      later = setTimeout(() => { later = 0; count(); }, QUIET_MS);
    }
    if (last && picked >= 0) tell(shown[picked]);
  }
}
if ("live" in document.documentElement.dataset) follow();
