"""A recorded model server answers as it did."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from tests.trace.traces import Script

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
PATH = "/v1/chat/completions"


def exchange(script: Script, n: int, *pieces: str, status: int = 200, **end: Any) -> Script:
    script.add("model", "in", n=n, kind="request", data={"method": "POST", "target": PATH})
    headers = [["Content-Type", "text/event-stream"], ["Content-Length", "99"], ["X-N", str(n)]]
    data = {"status": status, "reason": "Odd", "headers": headers}
    script.add("model", "in", n=n, kind="response", data=data)
    for piece in pieces:
        script.add("model", "in", n=n, kind="response_body", text=piece)
    outcome = {"outcome": "complete", "path": PATH, "status": status} | end
    return script.add("model", n=n, kind="end", data=outcome)


@contextmanager
def served(script: Script, folder: Path, *options: str) -> Iterator[str]:
    command = [BRIDGE, "trace", "replay", "--as", "model", *options, script.file(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 143


def post(url: str, path: str = PATH) -> tuple[int, str | None, str]:
    try:
        with urllib.request.urlopen(f"{url}{path}", b"{}", timeout=20) as answer:
            return answer.status, answer.headers["X-N"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["X-N"], error.read().decode()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_requests_get_the_recorded_answers_in_turn(tmp_path: Path, loop: str) -> None:
    script = exchange(exchange(Script(), 1, "data: é\n\n", "data: b\n\n"), 2, "no", status=429)
    with served(script, tmp_path, "--loop", loop) as url:
        assert post(url) == (200, "1", "data: é\n\ndata: b\n\n")
        assert post(url) == (429, "2", "no")
        status, _, words = post(url)
        assert status == 404
        assert "no further answer to POST /v1/chat/completions" in words
        assert post(url, "/other")[0] == 404


def test_a_stream_that_broke_off_breaks_off(tmp_path: Path) -> None:
    script = exchange(Script(), 1, "data: a\n\n", outcome="cut")
    with served(script, tmp_path) as url, pytest.raises(IncompleteRead) as caught:
        post(url)
    assert caught.value.partial == b"data: a\n\n"


def raw(url: str, path: str = PATH, method: str = "POST") -> bytes:
    """What comes back, to the end of the connection."""
    host, port = url.removeprefix("http://").split(":")
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def recorded(
    *pieces: dict[str, Any], headers: list[list[str]], method: str = "POST", **end: Any
) -> Script:
    """One exchange, as the recorder writes it."""
    script = Script().add(
        "model", "in", n=1, kind="request", data={"method": method, "target": PATH}
    )
    data = {"status": 200, "reason": "Fine", "headers": headers}
    script.add("model", "in", n=1, kind="response", data=data)
    for piece in pieces:
        script.add("model", "in", n=1, kind="response_body", **piece)
    outcome = {"outcome": "complete", "path": PATH, "status": 200} | end
    return script.add("model", n=1, kind="end", data=outcome)


LENGTH = ["Content-Length", "4"]
GZIP = ["Content-Encoding", "gzip"]


def test_a_body_as_it_came_has_the_headers_it_came_with(tmp_path: Path) -> None:
    script = recorded({"text": "ab"}, {"text": "cd"}, headers=[GZIP, LENGTH])
    with served(script, tmp_path) as url:
        head, _, body = raw(url).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 Fine\r\nContent-Encoding: gzip\r\nContent-Length: 4")
    assert body == b"abcd"


def test_a_body_that_was_written_decoded_is_said_to_be_plain(tmp_path: Path) -> None:
    piece = {"text": '{"a":1}', "data": {"decoded": "gzip"}}
    with served(recorded(piece, headers=[GZIP, LENGTH]), tmp_path) as url:
        answer = raw(url)
    assert b"ontent-Encoding" not in answer
    assert answer.endswith(b'7\r\n{"a":1}\r\n0\r\n\r\n')


def test_a_body_that_was_left_out_is_not_made_up(tmp_path: Path) -> None:
    piece = {"data": {"omitted": 4, "encoding": "br"}}
    with served(recorded(piece, headers=[LENGTH]), tmp_path) as url:
        answer = raw(url)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"not recorded as a whole: omitted (br)" in answer


@pytest.mark.parametrize("outcome", ["cut", "gone", None])
@pytest.mark.parametrize("headers", [[], [["content-length", "9"]]])
def test_an_answer_without_an_end_gets_none(
    tmp_path: Path, outcome: str | None, headers: list[list[str]]
) -> None:
    script = recorded({"text": "abcd"}, headers=headers, outcome=outcome)
    if outcome is None:
        script.records.pop()  # the recording was stopped meanwhile
    with served(script, tmp_path) as url:
        answer = raw(url)
    assert answer.endswith(b"\r\n\r\nabcd" if headers else b"4\r\nabcd\r\n")


def test_an_upstream_that_gave_no_answer_gives_none(tmp_path: Path) -> None:
    script = recorded(headers=[], outcome="failed")
    del script.records[1]
    with served(script, tmp_path) as url:
        assert raw(url) == b""


def test_the_answer_to_a_head_request_has_its_length_and_no_body(tmp_path: Path) -> None:
    with served(recorded(headers=[LENGTH], method="HEAD"), tmp_path) as url:
        assert b"\r\nContent-Length: 4\r\n" in raw(url, method="HEAD")


def test_what_the_proxy_refused_never_came_to_the_server(tmp_path: Path) -> None:
    script = exchange(exchange(Script(), 1, outcome="refused", status=400), 2, "yes")
    with served(script, tmp_path) as url:
        assert post(url)[2] == "yes"


def test_delays_are_kept_where_asked_for(tmp_path: Path) -> None:
    with served(exchange(Script(), 1, "a", "b"), tmp_path, "--delays") as url:
        assert post(url)[2] == "ab"


def test_without_an_exchange_there_is_nothing_to_serve(tmp_path: Path) -> None:
    command = [BRIDGE, "trace", "replay", "--as", "model", Script().say("x").file(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "no model exchange" in ended.stderr
