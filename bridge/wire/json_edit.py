"""Edits in a JSON text by path: values replaced, members and elements cut out, the rest as it is.

    edit(b'{"a":[1, 2],"b":3}', "rule", {("a", 0): None, ("b",): b"4"})   # {"a":[2],"b":4}

Rule: as in splice, whose spans are used: nothing but the edited values changes. Of a duplicate key
the last counts. Called by bridge.model for the rules that edit answers.
"""

from collections.abc import Mapping

from bridge.wire.json_scan import Member, NotJSON, Text, elements, is_utf8, members, skip_space
from bridge.wire.splice import Span, Spliced, Wish, cut, edit_object
from protocol_schemas.model import Change

Path = tuple[str | int, ...]


def edit(text: Text, rule: str, wishes: Mapping[Path, bytes | None]) -> Spliced:
    """The text with each value at its path as wished (raw JSON, or None to be left out).

    Members that are not there are added, elements are not. Raises NotJSON; paths that lead nowhere
    are passed over.
    """
    if not is_utf8(text):
        raise NotJSON("not UTF-8")
    spans: list[Span] = []
    changes: list[Change] = []
    _walk(text, skip_space(text, 0), rule, wishes, "", spans, changes)
    return Spliced(*cut(text, spans), changes)


def _walk(
    text: Text, start: int, rule: str, wishes: Mapping[Path, bytes | None], shown: str,
    spans: list[Span], changes: list[Change],
) -> None:  # fmt: skip
    opener = text[start : start + 1]
    if opener == b"{":
        inside = members(text, start, {})
    elif opener == b"[":
        # An array's elements are cut out as an object's members are.
        found = elements(text, start)
        inside = [Member(str(index), at, at, end) for index, (at, end) in enumerate(found)]
    else:
        return
    there = {member.key: member for member in inside}
    here: dict[str, Wish] = {}
    below: dict[str, dict[Path, bytes | None]] = {}
    for path, value in wishes.items():
        key = str(path[0])
        if len(path) > 1:
            below.setdefault(key, {})[path[1:]] = value
        elif opener == b"{" or key in there:
            here[key] = Wish(rule, value)
    more, changed = edit_object(text, start, inside, here, shown)
    spans += more
    changes += changed
    for key, deeper in below.items():
        if key in there:
            _walk(text, there[key].start, rule, deeper, f"{shown}{key}.", spans, changes)
