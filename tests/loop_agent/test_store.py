"""Session files: whole, torn, foreign; and the pages of a list."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import RequestFailed, UsageError
from bridge.loop_agent import store as store_module
from bridge.loop_agent.store import Store
from protocol_schemas.session_file import AnyLine, Head, Message, Mode, Rule, Spent, Title


def head(name: str, cwd: str = "/tmp", **more: object) -> Head:
    return Head(name, cwd, "2026-01-01T00:00:00Z", **more)  # type: ignore[arg-type]


LINES: list[AnyLine] = [
    head("a", system="s", parent="p"),
    Title("t"),
    Message({"role": "user", "content": "é\u2028\ud83d"}, [{"x": [None, 1.5]}]),
    Mode("auto"),
    Rule("bash", False),
    Spent(1, 2, 3, 4),
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "sessions")


def test_what_is_written_is_read_again(store: Store) -> None:
    file = store.create(LINES[:1])
    for line in LINES[1:]:
        file.append(line)
    assert store.read("a") == LINES
    assert store.open("a")[0] == LINES


def test_the_directory_and_its_files_are_the_users_alone(store: Store, tmp_path: Path) -> None:
    store.create(LINES)
    directory = tmp_path / "deep" / "sessions"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "a.ndjson").stat().st_mode & 0o777 == 0o600


def test_a_crash_at_any_byte_loses_the_last_line_at_most(store: Store, tmp_path: Path) -> None:
    store.create(LINES)
    path = tmp_path / "deep" / "sessions" / "a.ndjson"
    data = path.read_bytes()
    first = data.find(b"\n") + 1
    for cut in range(first, len(data) + 1):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        lines, file = store.open("a")
        assert lines == LINES[:whole]
        file.append(Title("next"))
        assert store.read("a") == [*LINES[:whole], Title("next")]


def test_lines_of_a_later_kind_are_left_out(store: Store, tmp_path: Path) -> None:
    store.create(LINES[:1])
    path = tmp_path / "deep" / "sessions" / "a.ndjson"
    path.write_bytes(path.read_bytes() + b'{"kind":"later"}\nnot json\n')
    assert store.read("a") == LINES[:1]


def test_a_later_format_is_refused(store: Store) -> None:
    store.create([head("a", format=2)])
    with pytest.raises(RequestFailed) as caught:
        store.read("a")
    assert "newer format" in caught.value.data["details"]


@pytest.mark.parametrize("name", ["../a", "", "a/b", "a.b", "x" * 129, "a\0", "nope"])
def test_an_id_is_never_a_path(store: Store, name: str) -> None:
    store.create(LINES)
    with pytest.raises(RequestFailed) as caught:
        store.read(name)
    assert (caught.value.code, caught.value.data) == (-32002, {"sessionId": name})
    store.delete(name)
    assert store.read("a") == LINES


def test_a_session_deleted_under_a_writer_stays_deleted(store: Store) -> None:
    file = store.create(LINES)
    store.delete("a")
    store.delete("a")
    file.append(Title("x"))
    assert store.page(None, None) == {"sessions": []}


def test_pages_hold_every_session_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PAGE", 3)
    for number in range(8):
        store.create([head(f"s{number}", "/even" if number % 2 == 0 else "/odd")])
        # Some in the same instant: the order has to be whole nevertheless.
        os.utime(tmp_path / "deep" / "sessions" / f"s{number}.ndjson", (0, number // 3))
    (tmp_path / "deep" / "sessions" / "strange.txt").write_text("x")
    seen: list[str] = []
    sizes: list[int] = []
    cursor: str | None = None
    while True:
        page = store.page(None, cursor)
        seen += [info["sessionId"] for info in page["sessions"]]
        sizes.append(len(page["sessions"]))
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert seen == ["s6", "s7", "s3", "s4", "s5", "s0", "s1", "s2"]
    assert sizes == [3, 3, 2]
    odd = store.page("/odd", None)
    assert [info["sessionId"] for info in odd["sessions"]] == ["s7", "s3", "s5"]


@given(st.text())
def test_a_cursor_of_someone_elses_is_refused(cursor: str) -> None:
    with pytest.raises(RequestFailed, match="cursor"):
        store_module._parse_cursor("x" + cursor)


def test_a_directory_that_cannot_be_used_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="--sessions"):
        Store(tmp_path / "file")
