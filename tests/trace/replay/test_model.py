"""A recorded model server answers as it did."""

import json
import signal
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


def test_delays_are_kept_where_asked_for(tmp_path: Path) -> None:
    with served(exchange(Script(), 1, "a", "b"), tmp_path, "--delays") as url:
        assert post(url)[2] == "ab"


def test_without_an_exchange_there_is_nothing_to_serve(tmp_path: Path) -> None:
    command = [BRIDGE, "trace", "replay", "--as", "model", Script().say("x").file(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "no model exchange" in ended.stderr
