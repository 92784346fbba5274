r"""The filter language of `trace`: which entries of a timeline are wanted.

    channel:acp method:session/* dir:in          all must hold
    method:session/prompt,session/new            one of these; * and ? as in file names
    text~"rate limit"                            a regular expression, case aside
    latency>2s size>=10k line<500                numbers, with s, ms, us, k, M
    since:5s until:1m                            from, to so long after the start
    is:error is:request                          failures; roles
    !channel:stderr  (id:7 or id:8)  not is:noise  "words"

In quotes \" is a quote and \\ a backslash; a regular expression there keeps all but the first.

Owns: the grammar. Rule: a filter that cannot be understood says where, and what could stand there.
Pure; shared by show, tail, stats, check and export.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from math import inf

from bridge.errors import UsageError
from bridge.trace.timeline import Entry
from bridge.wire import codec

Predicate = Callable[[Entry], bool]


def _data_text(entry: Entry) -> str:
    parts: list[str] = []
    if entry.event.content is not None:
        parts.append(entry.event.content.decode(errors="replace"))
    if entry.event.data:
        parts.append(codec.encode(entry.event.data).decode(errors="replace"))
    if entry.text is not None:
        # Once more without JSON's escapes.
        parts.append(entry.text)
    return "\n".join(parts)


def tool_of(entry: Entry) -> str | None:
    """The tool that an update, a permission request or an attempt is about."""
    fields = entry.fields
    call = codec.mapping(fields.get("update")) or codec.mapping(fields.get("toolCall")) or {}
    for value in (call.get("name"), call.get("title"), fields.get("tool"), fields.get("name")):
        if isinstance(value, str):
            return value
    return None


_TEXTS: dict[str, Callable[[Entry], str | None]] = {
    "channel": lambda entry: entry.event.ch,
    "dir": lambda entry: entry.event.dir,
    "method": lambda entry: entry.method,
    "id": lambda entry: None if entry.id is None else entry.id.strip('"'),
    "session": lambda entry: entry.event.session,
    "acp-session": lambda entry: entry.session_id,
    "update": lambda entry: entry.update,
    "kind": lambda entry: entry.event.kind,
    "tool": tool_of,
    "text": _data_text,
}
_NUMBERS: dict[str, Callable[[Entry], float | None]] = {
    "line": lambda entry: entry.event.line,
    "n": lambda entry: entry.event.n,
    "t": lambda entry: entry.event.t,
    "latency": lambda entry: entry.latency,
    "size": lambda entry: len(entry.event.content or b""),
}
_STATES: dict[str, Predicate] = {
    "error": lambda entry: entry.failed,
    "request": lambda entry: entry.role == "request",
    "response": lambda entry: entry.role == "response",
    "notification": lambda entry: entry.role == "notification",
    "noise": lambda entry: entry.role == "noise",
    "event": lambda entry: entry.role == "event",
    "unanswered": lambda entry: entry.role == "request" and entry.partner is None,
}
_VALUE_MISSING = 'a value is missing; one with spaces or parentheses stands in quotes, "" is empty'
_ALIASES = {"ch": "channel", "direction": "dir", "op": "method", "operation": "method"}
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "h": 3600.0, "k": 1e3, "M": 1e6}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<open>\() | (?P<close>\)) | (?P<not>!(?=\s*\S)|-(?=\S))
      | (?P<field>[A-Za-z][A-Za-z-]*)(?P<op><=|>=|[:=~<>])
        (?P<value>"(?:[^"\\]|\\.)*"|(?:[^\s()"]|\([^\s()"]*\))*)
      | (?P<quoted>"(?:[^"\\]|\\.)*") | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)


def compile_filter(text: str) -> Predicate:
    """The predicate of a filter; an empty one lets everything through. Raises UsageError."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._cut()
        self._at = 0

    def _cut(self) -> list[re.Match[str]]:
        tokens: list[re.Match[str]] = []
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._error(at, 'a quote " that is not closed')
            tokens.append(match)
            at = match.end()
        return tokens

    def _error(self, at: int, words: str) -> UsageError:
        return UsageError(f"filter: {words}, at column {at + 1} of: {self._text}")

    def parse(self) -> Predicate:
        if not self._tokens:
            return lambda _entry: True
        found = self._either()
        if (token := self._peek()) is not None:
            raise self._error(token.start(), "a ) too many")
        return found

    def _peek(self) -> re.Match[str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _word(self) -> str | None:
        token = self._peek()
        return None if token is None else token["word"]

    def _either(self) -> Predicate:
        options = [self._all()]
        while self._word() in ("or", "OR", "|"):
            self._at += 1
            options.append(self._all())
        if len(options) == 1:
            return options[0]
        return lambda entry: any(option(entry) for option in options)

    def _all(self) -> Predicate:
        parts: list[Predicate] = []
        while (token := self._peek()) is not None:
            if token["close"] or self._word() in ("or", "OR", "|"):
                break
            if self._word() in ("and", "AND"):
                self._at += 1
                continue
            parts.append(self._one())
        if not parts:
            at = len(self._text) if token is None else token.start()
            raise self._error(at, "a condition is missing")
        if len(parts) == 1:
            return parts[0]
        return lambda entry: all(part(entry) for part in parts)

    def _one(self) -> Predicate:
        token = self._peek()
        if token is None:
            raise self._error(len(self._text), "a condition is missing")
        self._at += 1
        if token["not"] or token["word"] in ("not", "NOT"):
            part = self._one()
            return lambda entry: not part(entry)
        if token["open"]:
            inside = self._either()
            end = self._peek()
            if end is None or not end["close"]:
                raise self._error(token.start("open"), "a ( that is not closed")
            self._at += 1
            return inside
        if token["close"]:
            raise self._error(token.start("close"), "a ) too many")
        if token["field"]:
            return self._condition(token)
        words = _unquoted(token["quoted"] or token["word"]).casefold()
        return lambda entry: words in _data_text(entry).casefold()

    def _condition(self, token: re.Match[str]) -> Predicate:
        field = _ALIASES.get(token["field"], token["field"])
        op, value = token["op"], _unquoted(token["value"], regex=token["op"] == "~")
        at = token.start("field")
        if not token["value"]:
            raise self._error(token.end(), _VALUE_MISSING)
        if field in ("is", "since", "until") and op not in (":", "="):
            raise self._error(token.start("op"), f"{field} is followed by a :")
        if field == "is":
            return self._state(token, value)
        if field in ("since", "until"):
            moment = self._number(token, value)
            if field == "since":
                return lambda entry: entry.event.t >= moment
            return lambda entry: entry.event.t <= moment
        if field in _NUMBERS:
            return self._comparison(token, _NUMBERS[field], op, value)
        if field in _TEXTS:
            return self._match(token, _TEXTS[field], op, value)
        known = ", ".join(sorted([*_TEXTS, *_NUMBERS, "is", "since", "until"]))
        raise self._error(at, f"no field {token['field']!r}; there are {known}")

    def _state(self, token: re.Match[str], value: str) -> Predicate:
        states: list[Predicate] = []
        for name in value.split(","):
            if name not in _STATES:
                words = f"is:{name} is unknown; there are {', '.join(_STATES)}"
                raise self._error(token.start("field"), words)
            states.append(_STATES[name])
        return lambda entry: any(state(entry) for state in states)

    def _comparison(
        self, token: re.Match[str], get: Callable[[Entry], float | None], op: str, value: str
    ) -> Predicate:
        if op == "~":
            raise self._error(token.start("op"), f"{token['field']} is a number: : < > <= >=")
        if op in (":", "=") and "," in value:
            options = [self._comparison(token, get, op, part) for part in value.split(",")]
            return lambda entry: any(option(entry) for option in options)
        if op in (":", "=") and "-" in value and len(value) > 1:
            first, _, last = value.partition("-")
            low = self._number(token, first) if first else -inf
            high = self._number(token, last) if last else inf
            return lambda entry: (got := get(entry)) is not None and low <= got <= high
        wanted = self._number(token, value)
        compare = _COMPARE[op]

        def holds(entry: Entry) -> bool:
            got = get(entry)
            return got is not None and compare(got, wanted)

        return holds

    def _number(self, token: re.Match[str], value: str) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(us|ms|[smhkM]?)", value)
        if match is None:
            raise self._error(token.start("value"), f"{value!r} is no number like 500, 5s or 20ms")
        return float(match[1]) * _UNITS[match[2]]

    def _match(
        self, token: re.Match[str], get: Callable[[Entry], str | None], op: str, value: str
    ) -> Predicate:
        if op in ("<", ">", "<=", ">="):
            raise self._error(token.start("op"), f"{token['field']} is a text: : = ~")
        try:
            if op == "~":
                find = re.compile(value, re.IGNORECASE).search
            elif op == "=":
                find = re.compile(re.escape(value)).fullmatch
            else:
                globs = "|".join(map(translate, value.split(",")))
                find = re.compile(globs, re.IGNORECASE).match
                if token["field"] == "text":
                    find = re.compile(re.escape(value), re.IGNORECASE).search
        except re.error as error:
            raise self._error(token.start("value"), f"no regular expression: {error}") from None
        return lambda entry: (got := get(entry)) is not None and find(got) is not None


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ":": lambda got, wanted: got == wanted,
    "=": lambda got, wanted: got == wanted,
    "<": lambda got, wanted: got < wanted,
    ">": lambda got, wanted: got > wanted,
    "<=": lambda got, wanted: got <= wanted,
    ">=": lambda got, wanted: got >= wanted,
}


def _unquoted(text: str, *, regex: bool = False) -> str:
    """What stands between the quotes; a regular expression keeps its backslashes."""
    if text.startswith('"'):
        return re.sub(r'\\(")' if regex else r'\\(["\\])', r"\1", text[1:-1])
    return text
