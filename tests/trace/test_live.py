"""A trace served as it grows: on loopback, under a name nobody can guess, without secrets."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trace.test_html import SHOTS, seen_in_browser
from tests.trace.traces import Script

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(Script().opened().say("CANARY-1").file(tmp_path))


@pytest.fixture
def url(file: Path) -> Iterator[str]:
    command = [BRIDGE, "trace", "html", "--serve", "--mask", "CANARY-1", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


def get(url: str, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def rows(url: str, after: int) -> list[Any]:
    return json.loads(get(f"{url}rows?after={after}")[1])["rows"]


def test_the_page_asks_its_own_server_only(url: str) -> None:
    status, page = get(url)
    assert status == 200
    assert b"connect-src 'self'" in page
    assert b"data-live" in page


def test_what_is_there_and_what_comes_is_served_without_secrets(url: str, file: Path) -> None:
    first = rows(url, 0)
    assert [row[8] for row in first] == [
        *("initialize", "initialize", "session/new", "session/new"),
        "session/update",
    ]
    assert "CANARY" not in json.dumps(first)
    with file.open("a") as end:
        end.write('{"t":90000000,"ch":"stderr","dir":"in","text":"late CANARY-1"}\n')
    [late] = rows(url, len(first))
    assert late[16] == "late [secret given-1]"


def test_findings_come_with_the_lines_that_cause_them(url: str, file: Path) -> None:
    first = json.loads(get(f"{url}rows?after=0&findings=0")[1])
    assert first["findings"] == []
    with file.open("a") as end:
        end.write(
            '{"t":90000000,"ch":"acp","dir":"in","n":1,"session":"","text":"oops CANARY-1"}\n'
        )
        end.write('{"t":91000000,"ch":"trace","kind":"end","data":{"reason":"closed"}}\n')
    found: list[Any] = []
    while len(found) < 1:
        found += json.loads(get(f"{url}rows?after=5&findings=0")[1])["findings"]
    assert (found[0]["rule"], found[0]["line"]) == ("noise", 7)
    assert "CANARY" not in json.dumps(found)


def test_a_number_that_is_none_is_the_beginning(url: str) -> None:
    assert len(json.loads(get(f"{url}rows?after=x&findings=-1")[1])["rows"]) == 5


@pytest.mark.peers
def test_a_page_in_a_browser_shows_findings_as_they_come(url: str, file: Path) -> None:
    line = '{"t":90000000,"ch":"acp","dir":"in","n":1,"session":"","text":"oops CANARY-1"}'
    seen = seen_in_browser("live", url, file, line)
    assert seen["before"].startswith("5 rows of 5 events; 0 findings")
    assert "new: error noise on line 7" in seen["after"]
    assert "line 7," in seen["row"]
    assert "error: noise" in seen["message"]
    assert "CANARY" not in json.dumps(seen)
    assert {request.split("/rows?")[0].rstrip("/") for request in seen["requests"]} == {
        url.rstrip("/")
    }
    assert (SHOTS / "live.png").stat().st_size > 15_000


def test_other_paths_and_other_names_get_nothing(url: str) -> None:
    base = url.rsplit("/", 2)[0]
    assert get(f"{base}/")[0] == 404
    assert get(f"{base}/guess/rows?after=0")[0] == 404
    assert get(url, Host="evil.invalid")[0] == 421
    assert url.startswith("http://127.0.0.1:")
    assert len(url.rsplit("/", 2)[1]) >= 20


def test_what_is_no_trace_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    command = [BRIDGE, "trace", "html", "--serve", str(tmp_path / "x")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "is no trace" in ended.stderr
    assert "Traceback" not in ended.stderr
