"use strict";
// The filter language of `trace show`, on the page's events. compile(text) gives a function of an
// event, or throws an Error whose message says what is wrong and where.
const Filter = (() => {
  const TEXTS = {
    channel: (e) => e.ch, dir: (e) => e.dir, method: (e) => e.method, id: (e) => e.id,
    session: (e) => e.session, "acp-session": (e) => e.sid, update: (e) => e.update,
    kind: (e) => e.kind, tool: (e) => e.tool, text: (e) => e.content + "\n" + e.words,
  };
  const NUMBERS = {
    line: (e) => e.line, n: (e) => e.n, t: (e) => e.t, latency: (e) => e.latency, size: (e) => e.size,
  };
  const STATES = {
    error: (e) => e.failed, request: (e) => e.role === "request", response: (e) => e.role === "response",
    notification: (e) => e.role === "notification", noise: (e) => e.role === "noise",
    event: (e) => e.role === "event", unanswered: (e) => e.role === "request" && !e.partner,
    finding: (e) => e.findings.length > 0,
  };
  const ALIASES = { ch: "channel", direction: "dir", op: "method", operation: "method" };
  const UNITS = { "": 1, s: 1, ms: 1e-3, us: 1e-6, m: 60, h: 3600, k: 1e3, M: 1e6 };
  const TOKEN = /\s*(?:(\()|(\))|(!(?=\s*\S)|-(?=\S))|([A-Za-z][A-Za-z-]*)(<=|>=|[:=~<>])("(?:[^"\\]|\\.)*"|(?:[^\s()"]|\([^\s()"]*\))*)|("(?:[^"\\]|\\.)*")|([^\s()"]+))/y;
  const unquote = (text, regex) =>
    text.startsWith('"') ? text.slice(1, -1).replace(regex ? /\\(")/g : /\\(["\\])/g, "$1") : text;
  const escape = (text) => text.replace(/[.+^${}()|[\]\\]/g, "\\$&");

  function compile(text) {
    const fail = (words, at) => { throw new Error(`${words}, at column ${at + 1}`); };
    const tokens = [];
    const end = text.trimEnd().length;
    for (let at = 0; at < end;) {
      TOKEN.lastIndex = at;
      const match = TOKEN.exec(text);
      if (!match) fail('a quote " that is not closed', at);
      tokens.push(match);
      at = TOKEN.lastIndex;
    }
    let next = 0;
    const word = () => next < tokens.length && tokens[next][8];
    const isOr = () => ["or", "OR", "|"].includes(word());

    function either() {
      const options = [all()];
      while (isOr()) { next += 1; options.push(all()); }
      return options.length === 1 ? options[0] : (e) => options.some((option) => option(e));
    }
    function all() {
      const parts = [];
      while (next < tokens.length && !tokens[next][2] && !isOr()) {
        if (["and", "AND"].includes(word())) next += 1;
        else parts.push(one());
      }
      if (!parts.length) fail("a condition is missing", next < tokens.length ? tokens[next].index : end);
      return (e) => parts.every((part) => part(e));
    }
    function one() {
      const token = tokens[next];
      if (!token) fail("a condition is missing", end);
      next += 1;
      if (token[3] || ["not", "NOT"].includes(token[8])) {
        const part = one();
        return (e) => !part(e);
      }
      if (token[1]) {
        const inside = either();
        if (next >= tokens.length || !tokens[next][2]) fail("a ( that is not closed", token.index);
        next += 1;
        return inside;
      }
      if (token[2]) fail("a ) too many", token.index);
      if (token[4]) return condition(token);
      const words = unquote(token[7] || token[8]).toLowerCase();
      return (e) => TEXTS.text(e).toLowerCase().includes(words);
    }
    function number(token, value) {
      const match = /^(\d+(?:\.\d*)?|\.\d+)(us|ms|[smhkM]?)$/.exec(value);
      if (!match) fail(`${value} is no number like 500, 5s or 20ms`, token.index);
      return Number(match[1]) * UNITS[match[2]];
    }
    function condition(token) {
      const field = ALIASES[token[4]] || token[4];
      const op = token[5];
      const value = unquote(token[6], op === "~");
      if (!token[6]) fail('a value is missing; one with spaces or parentheses stands in quotes, "" is empty', token.index);
      if (["is", "since", "until"].includes(field) && !":=".includes(op)) fail(`${field} is followed by a :`, token.index);
      if (field === "is") {
        const states = value.split(",").map((name) =>
          STATES[name] || fail(`is:${name} is unknown; there are ${Object.keys(STATES).join(", ")}`, token.index));
        return (e) => states.some((state) => state(e));
      }
      if (field === "since" || field === "until") {
        const moment = number(token, value);
        return field === "since" ? (e) => e.t >= moment : (e) => e.t <= moment;
      }
      if (NUMBERS[field]) return comparison(token, NUMBERS[field], op, value);
      const get = TEXTS[field];
      if (!get) fail(`no field ${token[4]}; there are ${[...Object.keys(TEXTS), ...Object.keys(NUMBERS), "is", "since", "until"].join(", ")}`, token.index);
      if ("<>".includes(op[0])) fail(`${token[4]} is a text: : = ~`, token.index);
      let find;
      if (op === "~") {
        try { find = new RegExp(value, "i"); } catch { fail("no regular expression", token.index); }
      } else if (op === "=") {
        return (e) => String(get(e) ?? "") === value;
      } else if (field === "text") {
        find = new RegExp(escape(value).replace(/[*?]/g, "\\$&"), "i");
      } else {
        const globs = value.split(",").map((glob) => escape(glob).replace(/\*/g, ".*").replace(/\?/g, "."));
        find = new RegExp(`^(?:${globs.join("|")})$`, "is");
      }
      return (e) => { const got = get(e); return got != null && find.test(got); };
    }
    function comparison(token, get, op, value) {
      if (op === "~") fail(`${token[4]} is a number: : < > <= >=`, token.index);
      if (":=".includes(op) && value.includes(",")) {
        const options = value.split(",").map((part) => comparison(token, get, op, part));
        return (e) => options.some((option) => option(e));
      }
      if (":=".includes(op) && value.includes("-") && value.length > 1) {
        const cut = value.indexOf("-");
        const low = cut ? number(token, value.slice(0, cut)) : -Infinity;
        const high = cut < value.length - 1 ? number(token, value.slice(cut + 1)) : Infinity;
        return (e) => { const got = get(e); return got != null && got >= low && got <= high; };
      }
      const wanted = number(token, value);
      const compare = {
        ":": (a) => a === wanted, "=": (a) => a === wanted, "<": (a) => a < wanted,
        ">": (a) => a > wanted, "<=": (a) => a <= wanted, ">=": (a) => a >= wanted,
      }[op];
      return (e) => { const got = get(e); return got != null && compare(got); };
    }
    if (!tokens.length) return () => true;
    const found = either();
    if (next < tokens.length) fail("a ) too many", tokens[next].index);
    return found;
  }
  return { compile };
})();
