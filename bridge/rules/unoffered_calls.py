"""Calls in an answer to tools that the request never offered: models make names up, and agents
abort the turn over them, or crash.

Off by default: it is the model's answer, and most agents tell the model of its mistake. Smaller
models behind vLLM, SGLang and Ollama, which pass on whatever name was written, need it most.
Rule: such calls are left out, what follows them moves up, and an answer of which no call is left
ends with `stop` in place of `tool_calls`. Pure: an answer, or a chunk of one, gives edits by path.
"""

from typing import Any, NamedTuple

NAME = "unoffered_calls"

Edits = dict[tuple[str | int, ...], bytes | None]


class Fate(NamedTuple):
    """Of a streamed call: its id, and the index it gets; None if it is left out."""

    id: str | None
    place: int | None


Seen = dict[tuple[int, int], list[Fate]]
"""The calls of a stream, by choice and index: one each, but servers exist that give all calls the
same index (Ollama, Gemini's chat completions)."""


def offered(tools: Any, functions: Any) -> frozenset[str]:
    """The names of a request's tools, of whichever type, and of its legacy functions."""
    names: list[Any] = [_dict(item).get("name") for item in _list(functions)]
    for item in _list(tools):
        tool = _dict(item)
        names.append(_dict(tool.get(str(tool.get("type", "function")))).get("name"))
        names.append(tool.get("name"))
    return frozenset(name for name in names if isinstance(name, str))


def in_answer(answer: Any, names: frozenset[str]) -> Edits:
    """The edits to a whole answer."""
    edits: Edits = {}
    for number, each in enumerate(_list(_dict(answer).get("choices"))):
        choice = _dict(each)
        calls = _list(_dict(choice.get("message")).get("tool_calls"))
        dropped = [index for index, call in enumerate(calls) if not _known(call, names)]
        if not dropped:
            continue
        place = ("choices", number, "message", "tool_calls")
        if len(dropped) < len(calls):
            edits |= {(*place, index): None for index in dropped}
            continue
        edits[place] = None
        if choice.get("finish_reason") == "tool_calls":
            edits["choices", number, "finish_reason"] = b'"stop"'
    return edits


def in_chunk(chunk: Any, names: frozenset[str], seen: Seen) -> Edits:
    """The edits to one chunk of a stream; `seen` is this stream's, and grows."""
    edits: Edits = {}
    for number, each in enumerate(_list(_dict(chunk).get("choices"))):
        choice = _dict(each)
        which = choice.get("index") if isinstance(choice.get("index"), int) else 0
        calls = _list(_dict(choice.get("delta")).get("tool_calls"))
        place = ("choices", number, "delta", "tool_calls")
        moved = [_moved(call, which, names, seen) for call in calls]
        if calls and all(index is None for index in moved):
            edits[place] = None
        else:
            for position, index in enumerate(moved):
                if index is None:
                    edits[*place, position] = None
                elif _dict(calls[position]).get("index", index) != index:
                    edits[*place, position, "index"] = b"%d" % index
        fates = [fate for (other, _), calls in seen.items() if other == which for fate in calls]
        if (
            choice.get("finish_reason") == "tool_calls"
            and fates
            and all(fate.place is None for fate in fates)
        ):
            edits["choices", number, "finish_reason"] = b'"stop"'
    return edits


def _moved(call: Any, choice: Any, names: frozenset[str], seen: Seen) -> int | None:
    """Where a streamed call goes. Its name and its id come with its first piece."""
    tool = _dict(call)
    index, ident = tool.get("index"), tool.get("id")
    index = index if isinstance(index, int) else 0
    ident = ident if isinstance(ident, str) and ident else None
    fates = seen.setdefault((choice, index), [])
    if not fates or (_name(tool) and ident and ident != fates[-1].id):
        gone = sum(
            all(fate.place is None for fate in others)
            for (other, before), others in seen.items()
            if other == choice and before < index
        )
        fates.append(Fate(ident, index - gone if _known(call, names) else None))
    return fates[-1].place


def _known(call: Any, names: frozenset[str]) -> bool:
    """Whether a call's tool was offered; one without a name is not judged."""
    name = _name(_dict(call))
    return name is None or name in names


def _name(tool: dict[str, Any]) -> str | None:
    name = _dict(tool.get(str(tool.get("type", "function")))).get("name")
    return name if isinstance(name, str) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
