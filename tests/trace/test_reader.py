"""Trace files are read whatever state they are in."""

import json
import os
import threading
from pathlib import Path

import pytest

from bridge.errors import UsageError
from bridge.trace.reader import Damage, Event, Item, follow, read
from protocol_schemas.trace import Head

HEAD = {"trace": 1, "t": 1_000_000_000, "wall": "2026-01-01T00:00:00Z"}


def record(t: int, **fields: object) -> dict[str, object]:
    return {"t": 1_000_000_000 + t, "ch": "acp", "dir": "in", **fields}


def file_of(path: Path, *lines: object, rest: bytes = b"") -> str:
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + rest)
    return str(path)


def items(path: str) -> list[Item]:
    return list(read(path))


def test_times_are_seconds_since_the_recording_began(tmp_path: Path) -> None:
    [head, event] = items(file_of(tmp_path / "t", HEAD, record(1_500_000_000, text="x")))
    assert isinstance(head, Head)
    assert isinstance(event, Event)
    assert event.t == pytest.approx(1.5)
    assert (event.line, event.ch, event.dir, event.content) == (2, "acp", "in", b"x")


def test_the_content_is_the_bytes_that_passed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(
        b'{"t":1,"ch":"acp","msg":{"a" : 1.0}}\n'
        b'{"t":1,"ch":"acp","text":"no\\tjson"}\n'
        b'{"t":1,"ch":"acp","b64":"/wA="}\n'
        b'{"t":1,"ch":"process","kind":"exit","data":{"exit_code":1}}\n'
    )
    found = [item for item in items(str(path)) if isinstance(item, Event)]
    assert [event.content for event in found] == [b'{"a" : 1.0}', b"no\tjson", b"\xff\x00", None]
    assert [event.is_json for event in found] == [True, False, False, False]


def test_a_torn_last_line_is_told_apart_from_a_broken_one(tmp_path: Path) -> None:
    path = file_of(tmp_path / "t", HEAD, record(1), rest=b'{"t":3,"ch"')
    torn = items(path)[-1]
    assert isinstance(torn, Damage)
    assert torn.torn
    assert torn.line == 3
    path = file_of(tmp_path / "u", HEAD, "no record", record(2))
    broken = items(path)[1]
    assert isinstance(broken, Damage)
    assert not broken.torn
    assert isinstance(items(path)[2], Event)


def test_a_last_line_without_its_end_is_a_line(tmp_path: Path) -> None:
    path = file_of(tmp_path / "t", HEAD, rest=json.dumps(record(5, text="x")).encode())
    assert isinstance(items(path)[-1], Event)


def test_a_second_recording_in_the_file_has_its_own_clock(tmp_path: Path) -> None:
    later = {**HEAD, "t": 9_000_000_000}
    path = file_of(tmp_path / "t", HEAD, record(1), later, {**record(0), "t": 9_250_000_000})
    event = items(path)[-1]
    assert isinstance(event, Event)
    assert event.t == pytest.approx(0.25)


def test_lone_surrogates_are_survived(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(
        b'{"t":1,"ch":"acp","msg":{"a":"\\ud83d"}}\n'
        b'{"t":1,"ch":"mcp","kind":"x","data":{"a":"\\ud83d"}}\n'
    )
    first, second = (item for item in items(str(path)) if isinstance(item, Event))
    assert first.content == b'{"a":"\\ud83d"}'
    assert second.data == {"a": "\ud83d"}


def test_bare_transcripts_are_read_too(tmp_path: Path) -> None:
    lines = [{"t": 0.5, "dir": "c2a", "msg": {"id": 1}}, {"t": 0.75, "dir": "a2c", "msg": {}}]
    out, back = items(file_of(tmp_path / "t", *lines))
    assert isinstance(out, Event)
    assert isinstance(back, Event)
    assert (out.t, out.ch, out.dir, back.dir) == (0.5, "acp", "out", "in")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty: nothing has been recorded"),
        (b"\n\n", "is empty"),
        (b"hello world\n", "is no trace: line 1 is not JSON"),
        (b'\n{"a":1}\n', "is no trace: line 2 is not a record"),
        (b"\xff\xfe\x00\n" * 3, "is no trace: line 1"),
        (b'{"trace":1,"t"', "is no trace: line 1 is cut off"),
        (b'{"trace":7,"t":1,"wall":"x"}\n{"t":2,"ch":"x"}\n', "of format 7; .* reads format 1"),
        (b'{"trace":7,"begun":"then"}\n', "of format 7; .* reads format 1"),
        (b"\x1f\x8b\x08\x00\x00", "is compressed: unpack it first"),
        (b"\xff\xfe{\x00", "is no trace: line 1 is not JSON"),
    ],
)
def test_what_is_no_trace_is_said_to_be_none(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words):
        items(str(path))


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":1,"ch":"acp","b64":"a"}',
        b'{"t":1,"ch":"acp","b64":"\xc3\xa9"}',
        b'{"t":1,"ch":"acp","msg":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"t":99999999999999999999999,"ch":"acp"}',
        b'{"t":NaN,"ch":"acp"}',
    ],
)
def test_a_line_that_cannot_be_read_is_told_of_and_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "t"
    path.write_bytes(json.dumps(HEAD).encode() + b"\n" + line + b'\n{"t":2,"ch":"x"}\n  ')
    _, damage, event = items(str(path))
    assert isinstance(damage, Damage)
    assert not damage.torn
    assert isinstance(event, Event)


def test_a_name_that_is_empty_is_no_folder() -> None:
    with pytest.raises(UsageError, match="name is empty"):
        items("")


def test_what_comes_through_a_pipe_ends_with_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(json.dumps(HEAD).encode() + b"\n",))
    writer.start()
    assert len(list(follow(str(path)))) == 1
    writer.join()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        items(str(tmp_path / "nowhere"))


def test_a_growing_file_is_followed_to_the_recording_s_end(tmp_path: Path) -> None:
    path = file_of(tmp_path / "t", HEAD, record(1), rest=b'{"t":1000000002,"ch":"acp",')
    found: list[Item] = []
    first = threading.Event()

    def watch() -> None:
        for item in follow(path):
            if item is not None:
                found.append(item)
            else:
                first.set()

    reader = threading.Thread(target=watch)
    reader.start()
    assert first.wait(20)
    with Path(path).open("ab") as file:
        file.write(b'"text":"late"}\n')
        file.write(json.dumps({"t": 1_000_000_003, "ch": "trace", "kind": "end"}).encode() + b"\n")
    reader.join(20)
    assert not reader.is_alive()
    assert [event.content for event in found if isinstance(event, Event)] == [None, b"late", None]
