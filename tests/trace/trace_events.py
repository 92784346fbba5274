"""A strict reader of the Trace Event Format: what it does not allow is an error here.

The rules are those of the format's description (JSON object format; metadata, instant, complete
and nestable asynchronous events), as far as our exports use it; a phase they do not use is one.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

UNITS = ("ms", "ns")
METADATA = ("process_name", "thread_name")
Event = dict[str, Any]


class Broken(Exception):
    """The document is not in the format."""


class Found(NamedTuple):
    """How much is in a document."""

    spans: int
    instants: int


def demand(holds: bool, words: str, event: object = None) -> None:
    if not holds:
        raise Broken(f"{words}: {event}")


def read(text: str) -> Found:
    """Reads a document; raises Broken."""
    document = json.loads(text)
    demand(isinstance(document, dict), "the document is an object")
    demand(document.get("displayTimeUnit") in UNITS, "displayTimeUnit is ms or ns")
    demand(isinstance(document.get("traceEvents"), list), "traceEvents is a list")
    named: set[tuple[str, int, int]] = set()
    used: set[tuple[int, int]] = set()
    open_spans: dict[tuple[str, str], list[Event]] = {}
    spans = instants = 0
    for event in document["traceEvents"]:
        demand(isinstance(event, dict), "an event is an object", event)
        for name in ("pid", "tid"):
            demand(type(event.get(name)) is int, f"{name} is an integer", event)
        demand(isinstance(event.get("name"), str) and event["name"] != "", "name is text", event)
        demand(isinstance(event.get("args"), dict), "args is an object", event)
        demand(type(event.get("ts")) in (int, float) and event["ts"] >= 0, "ts is a time", event)
        match event.get("ph"):
            case "M":
                demand(event["name"] in METADATA, "a known kind of metadata", event)
                demand(isinstance(event["args"].get("name"), str), "a name is text", event)
                key = event["name"], event["pid"], event["tid"] if "thread" in event["name"] else 0
                demand(key not in named, "a name is given once", event)
                named.add(key)
            case "i":
                demand(event.get("s") in ("g", "p", "t"), "an instant has a scope", event)
                used.add((event["pid"], event["tid"]))
                instants += 1
            case "b" | "e" as phase:
                demand(isinstance(event.get("cat"), str), "a category is text", event)
                demand(type(event.get("id")) in (int, str), "an id is text or a number", event)
                stack = open_spans.setdefault((event["cat"], str(event["id"])), [])
                if phase == "b":
                    stack.append(event)
                    used.add((event["pid"], event["tid"]))
                    spans += 1
                    continue
                demand(bool(stack), "an end has a beginning", event)
                begun = stack.pop()
                same = all(begun[name] == event[name] for name in ("name", "pid", "tid"))
                demand(same, "an end is that of its beginning", event)
                demand(event["ts"] >= begun["ts"], "an end comes after its beginning", event)
            case phase:
                raise Broken(f"a phase that is not used: {phase}")
    demand(not any(open_spans.values()), "every beginning has an end")
    for pid, tid in used:
        demand(("process_name", pid, 0) in named, "a process has a name", pid)
        demand(("thread_name", pid, tid) in named, "a thread has a name", (pid, tid))
    return Found(spans, instants)


def _first(document: Any, phase: str) -> Event:
    return next(event for event in document["traceEvents"] if event["ph"] == phase)


FAULTS: dict[str, Callable[[Any], object]] = {
    "no unit": lambda d: d.pop("displayTimeUnit"),
    "no events": lambda d: d.update(traceEvents={}),
    "a phase nobody knows": lambda d: _first(d, "i").update(ph="?"),
    "a pid that is text": lambda d: _first(d, "b").update(pid="1"),
    "a time that is text": lambda d: _first(d, "b").update(ts="1"),
    "a time before the beginning": lambda d: _first(d, "i").update(ts=-1),
    "no name": lambda d: _first(d, "i").pop("name"),
    "an instant of no scope": lambda d: _first(d, "i").update(s="x"),
    "a span without an end": lambda d: d["traceEvents"].remove(_first(d, "e")),
    "an end without a beginning": lambda d: d["traceEvents"].remove(_first(d, "b")),
    "an end before its beginning": lambda d: _first(d, "e").update(ts=0),
    "an end of another thread": lambda d: _first(d, "e").update(tid=99),
    "a process without a name": lambda d: d["traceEvents"].remove(_first(d, "M")),
    "a name given twice": lambda d: d["traceEvents"].append(_first(d, "M")),
}
"""Ways to spoil a document, each of which is to be refused."""
