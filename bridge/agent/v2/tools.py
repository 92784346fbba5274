"""Version 2's tool calls as version 1 tells of them: begun, updated, asked about.

Owns: one session's calls as far as they have come, by patches. Rules: the first update of a call
begins it; null becomes the value it stands for; items that were streamed are in the update that
ends the call; what version 1 has no word for is told by the nearest one, and then the original goes
along. Sans-IO; used by `bridge.agent.v2.session`.
"""

from typing import Any, NamedTuple

from bridge.agent.v2 import patches
from bridge.agent.v2.patches import Members
from bridge.wire import codec
from bridge.wire.codec import Raw

KEPT_CALLS = 10_000
"""Calls that are remembered; beyond, the oldest of those that are over are forgotten."""
STREAMED_BYTES = 16 * 1024 * 1024
"""Streamed items that are gathered for calls that are not over; beyond, they are told singly."""

FINAL = frozenset({"completed", "failed", "cancelled"})
_STATUSES = {
    **dict.fromkeys(("pending", "in_progress", "completed", "failed")),
    "cancelled": "failed",
}
"""Version 1's word for each; None: the same. Any other means that it is being worked on."""
_KINDS = frozenset(
    "read edit delete move search execute think fetch switch_mode other".split()  # noqa: SIM905
)
_CLEARED: dict[str, Any] = {
    "title": "",
    "kind": "other",
    "status": "pending",
    "content": [],
    "locations": [],
}
"""What null stands for in version 1, where null is no order."""
_BULKY = ("content", "rawOutput")
"""Fields that are not kept for the questions about a call."""
_BEGUN, _UNTITLED = patches.raw("tool_call"), patches.raw("")


class Told(NamedTuple):
    """An update in version 1's terms. `lost`: the original says more."""

    update: Members
    lost: bool


class _Call:
    def __init__(self) -> None:
        self.fields: Members = {}
        self.content: Raw | None = None
        self.streamed: list[Raw] = []
        self.announced = False
        self.over = False


class Tools:
    """One session's tool calls and terminals."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._cancellable: set[tuple[str, str]] = set()
        self._streamed = 0

    def cancellable(self, kind: str, ident: str) -> bool:
        """Whether that `tool_call` or `terminal` says that it can be cancelled now."""
        return (kind, ident) in self._cancellable

    def update(self, ident: str, change: Members) -> Told | None:
        """A `tool_call_update`; None where version 1 says it in the same way."""
        call = self._patched(ident, change)
        if call.announced:
            told = _worded(Told(change, lost=False))
        else:
            call.announced = True
            update = {"sessionUpdate": _BEGUN, "title": call.fields.get("name", _UNTITLED)}
            update |= call.fields
            if call.content is not None:
                update["content"] = call.content
            if "rawOutput" in change:
                update["rawOutput"] = change["rawOutput"]
            told = _worded(Told(update, lost=False)) or Told(update, lost=False)
        if call.over:
            told = self._finish(call, told, change)
        return told

    def chunk(self, ident: str, item: Raw | None) -> None:
        """A `tool_call_content_chunk`: kept for the update that ends the call."""
        call = self._call(ident)
        if item is None or call.over:
            return
        size = len(item)
        if self._streamed + size <= STREAMED_BYTES:
            self._streamed += size
            call.streamed.append(item.copy())

    def terminal(self, ident: str, change: Members) -> None:
        """A `terminal_update`: whether it can be cancelled."""
        self._capabilities("terminal", ident, change)
        if patches.is_object(change.get("exitStatus")):
            self._cancellable.discard(("terminal", ident))

    def question(self, params: Members) -> dict[str, Any]:
        """The params of a `session/request_permission` in version 1's terms, the original with
        them. A call that is asked about is patched first, as by an update."""
        subject = patches.members(params.get("subject", Raw(b"{}")))
        kind = patches.text(subject.get("type"))
        title = params.get("title", patches.raw(""))
        asked: Members
        if kind == "tool_call":
            change = patches.members(subject.get("toolCall", Raw(b"{}")))
            call = self._patched(patches.text(change.get("toolCallId")) or "", change)
            bulky = {name: change[name] for name in _BULKY if name in change}
            asked = {"title": title} | call.fields | bulky
            asked = (_worded(Told(asked, lost=False)) or Told(asked, lost=False)).update
        else:
            ident = subject.get("toolCallId", subject.get("terminalId", patches.raw("")))
            asked = {
                "toolCallId": patches.raw("") if patches.is_null(ident) else ident,
                "title": title,
            }
            if kind == "command":
                run = {name: subject[name] for name in ("command", "cwd") if name in subject}
                asked |= {"kind": patches.raw("execute"), "rawInput": patches.raw(run)}
            elif subject:
                asked["rawInput"] = params["subject"]
        return {
            "sessionId": params.get("sessionId"),
            "toolCall": asked,
            "options": params.get("options"),
            "original": params,
        }

    def _call(self, ident: str) -> _Call:
        call = self._calls.get(ident)
        if call is None:
            call = self._calls[ident] = _Call()
            if len(self._calls) > KEPT_CALLS:
                self._forget_oldest()
        return call

    def _patched(self, ident: str, change: Members) -> _Call:
        call = self._call(ident)
        kept = {name: value for name, value in change.items() if name not in _BULKY}
        kept.pop("sessionUpdate", None)
        patches.apply(call.fields, kept)
        if "content" in change:
            self._drop_streamed(call)
            content = change["content"]
            call.content = None if patches.is_null(content) else content.copy()
        status = patches.text(call.fields.get("status"))
        call.over = status in FINAL
        self._capabilities("tool_call", ident, change)
        if call.over:
            self._cancellable.discard(("tool_call", ident))
        return call

    def _capabilities(self, kind: str, ident: str, change: Members) -> None:
        if (given := change.get("capabilities")) is None:
            return
        offered = patches.members(given) if patches.is_object(given) else {}
        if patches.is_object(offered.get("cancel")):
            self._cancellable.add((kind, ident))
        else:
            self._cancellable.discard((kind, ident))

    def _finish(self, call: _Call, told: Told | None, change: Members) -> Told | None:
        """The end of a call: what was streamed is told with it, and nothing bulky is kept."""
        if call.streamed and "content" not in change:
            before = [] if call.content is None else patches.items(call.content)
            update = dict(change if told is None else told.update)
            update["content"] = patches.raw([*before, *call.streamed])
            lost = told is not None and told.lost
            told = _worded(Told(update, lost)) or Told(update, lost)
        self._drop_streamed(call)
        call.content = None
        call.fields.pop("rawInput", None)
        return told

    def _drop_streamed(self, call: _Call) -> None:
        self._streamed -= sum(map(len, call.streamed))
        call.streamed = []

    def _forget_oldest(self) -> None:
        for ident, call in list(self._calls.items())[: KEPT_CALLS // 10]:
            if call.over:
                del self._calls[ident]


def _worded(told: Told) -> Told | None:
    """The update in version 1's words; None if those were it already."""
    words: Members = {}
    for name, value in told.update.items():
        if patches.is_null(value):
            if name in _CLEARED:
                words[name] = patches.raw(_CLEARED[name])
        elif name == "status":
            status = patches.text(value)
            if status not in _STATUSES:
                words[name] = patches.raw("in_progress")
            elif (word := _STATUSES[status]) is not None:
                words[name] = patches.raw(word)
        elif name == "kind":
            if patches.text(value) not in _KINDS:
                words[name] = patches.raw("other")
        elif name == "content" and b'"diff"' in bytes(value):
            words[name] = patches.raw([_content(item) for item in patches.items(value)])
    if not words:
        return Told(told.update, told.lost) if told.lost else None
    return Told(told.update | words, lost=True)


def _content(item: Raw) -> Any:
    """An item of a call's content; a diff of version 2 has no texts but a patch, which is shown."""
    fields = codec.mapping(codec.decode(item)) or {}
    changes = fields.get("changes")
    if fields.get("type") != "diff" or not isinstance(changes, list):
        return item
    patch = codec.mapping(fields.get("patch")) or {}
    words = patch.get("text")
    if not isinstance(words, str):
        words = "\n".join(map(_change, changes))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {"type": "content", "content": {"type": "text", "text": words}}


def _change(change: Any) -> str:
    fields = codec.mapping(change) or {}
    names = (fields.get("operation"), fields.get("oldPath"), fields.get("path"))
    return " ".join(str(name) for name in names if name is not None)
