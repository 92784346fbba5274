"""The command from outside: its line, its end, its refusals; and case 91, no key in any output."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.model.command import PATIENCE, blocking_upstream, command, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def serve(sock: socket.socket) -> None:
    while head := until(sock, b"\r\n\r\n"):
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])  # type: ignore[index]
        got = len(head.partition(b"\r\n\r\n")[2])
        while got < length:
            got += len(sock.recv(65536))
        sock.sendall(OK)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bridge", "model", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_it_prints_its_url_serves_and_ends_on_a_signal(loop, number, code) -> None:
    with blocking_upstream(serve) as upstream, command("--loop", loop, upstream=upstream) as proxy:
        assert re.fullmatch(r'\{"url":"http://127\.0\.0\.1:\d+/[\w-]{22,}"\}\n', proxy.ready)
        with proxy.connect() as sock:
            sock.sendall(proxy.request(b'{"messages":[]}'))
            assert until(sock, b"{}") == OK
        proxy.process.send_signal(number)
        assert proxy.process.wait(10) == code
        assert proxy.process.stderr is not None
        assert proxy.process.stderr.read() == ""


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked\r\n", b""])
def test_open_streams_are_cut_never_ended_cleanly(framing: bytes) -> None:
    streaming = threading.Event()

    def stream(sock: socket.socket) -> None:
        until(sock, b"\r\n\r\n")
        body = b"3\r\nabc\r\n" if framing else b"abc"
        sock.sendall(b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (framing, body))
        streaming.set()
        sock.recv(1)

    with (
        blocking_upstream(stream) as upstream,
        command(upstream=upstream) as proxy,
        proxy.connect() as sock,
    ):
        sock.sendall(proxy.request(b"{}"))
        found = until(sock, b"abc\r\n")
        assert streaming.wait(10)
        proxy.process.terminate()
        assert proxy.process.wait(10) == 143
        try:
            while piece := sock.recv(65536):
                found += piece
        except ConnectionResetError:
            pass
        assert b"0\r\n\r\n" not in found


def test_it_does_not_read_stdin_and_listens_where_it_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with command("--listen", f"127.0.0.1:{port}", upstream="http://127.0.0.1:9") as proxy:
        assert proxy.port == port
        assert proxy.process.poll() is None


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--upstream", "ftp://x"], "http:// or https://"),
        (["--upstream", "http://user:CANARY@h:bad"], "not a URL"),
        (["--upstream", "http://h", "--listen", "0.0.0.0:0"], "--allow-remote"),
        (["--upstream", "http://h", "--listen", "192.0.2.1:0"], "--allow-remote"),
        (["--upstream", "http://h", "--listen", "nonsense"], "HOST:PORT"),
        (["--upstream", "http://h", "--listen", "127.0.0.1:99999"], "HOST:PORT"),
        (["--upstream", "http://h", "--max-turns", "0"], "--max-turns must be above 0"),
        (["--upstream", "http://h", "--idle-timeout", "-1"], "--idle-timeout must be above 0"),
        (["--upstream", "http://h", "--tool-call-content", "x"], "keep"),
        ([], "--upstream"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_2(arguments, words) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "CANARY" not in done.stderr


def test_an_address_in_use_is_one_clear_line_and_exit_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--upstream", "http://h", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 2
    assert "Address already in use; give another port, or 0 for any free one" in done.stderr


def test_events_are_printed_a_line_each_where_asked_for() -> None:
    flags = ("--events", "--max-turns", "1")
    with blocking_upstream(serve) as upstream, command(*flags, upstream=upstream) as proxy:
        with proxy.connect() as sock:
            sock.sendall(proxy.request(b'{"messages":[{"role":"assistant"}]}'))
            assert until(sock, b"{}") == OK
            sock.sendall(proxy.request(b"{}"))
            assert until(sock, b'"limit"').startswith(b"HTTP/1.1 400 ")
        assert proxy.process.stdout is not None
        first, second = (json.loads(proxy.process.stdout.readline()) for _ in range(2))
    assert first["outcome"] == "complete"
    assert first["changes"][0]["rule"] == "content"
    assert (second["outcome"], second["limit"]) == ("refused", "max_turns")


def test_agents_do_not_wait_for_who_does_not_read_the_events() -> None:
    with blocking_upstream(serve) as upstream, command("--events", upstream=upstream) as proxy:
        assert proxy.process.stdout is not None
        with proxy.connect() as sock:
            # A pipe holds 64 KiB.
            for _ in range(300):
                sock.sendall(proxy.request(b"{}", b"/v1/" + b"x" * 300))
                assert until(sock, b"{}") == OK
        proxy.process.stdout.close()
        with proxy.connect() as sock:
            sock.sendall(proxy.request(b"{}"))
            assert until(sock, b"{}") == OK
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(PATIENCE) == 143
        assert proxy.process.stderr is not None
        assert proxy.process.stderr.read() == ""


def test_options_reach_the_rules() -> None:
    bodies: list[bytes] = []

    def keep(sock: socket.socket) -> None:
        bodies.append(until(sock, b"}]}").partition(b"\r\n\r\n")[2])
        sock.sendall(OK)

    flags = ["--tool-call-content", "empty", "--drop-nulls", "--drop-empty-tool-calls"]
    with blocking_upstream(keep) as upstream, command(*flags, upstream=upstream) as proxy:
        for message in (b'"content":null,"tool_calls":[1]', b'"tool_calls":[],"audio":null,"x":1'):
            with proxy.connect() as sock:
                body = b'{"messages":[{"role":"assistant",%b}]}' % message
                sock.sendall(proxy.request(body))
                until(sock, b"{}")
    frame = b'{"messages":[{"role":"assistant",%b}]}'
    assert bodies == [frame % b'"content":"","tool_calls":[1]', frame % b'"x":1,"content":""']


def test_everything_is_recorded_where_asked_for(tmp_path: Path) -> None:
    trace = tmp_path / "model.trace"
    body = b'{"messages":[{"role":"assistant","content":null}]}'
    with (
        blocking_upstream(serve) as upstream,
        command("--record", str(trace), upstream=upstream) as proxy,
    ):
        with proxy.connect() as sock:
            sock.sendall(proxy.request(body))
            assert until(sock, b"{}") == OK
        proxy.process.terminate()
        assert proxy.process.wait(10) == 143
    records = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
    told = {(record["ch"], record.get("kind")) for record in records}
    assert {("model", "request"), ("bridge", "rewrite"), ("model", "response_body")} <= told
    assert next(r for r in records if r.get("kind") == "request_body")["msg"] == json.loads(body)


def test_case_91_no_key_is_in_any_output_at_debug_level(tmp_path: Path) -> None:
    trace = tmp_path / "model.trace"
    heads: list[bytes] = []

    def keep(sock: socket.socket) -> None:
        heads.append(until(sock, b"\r\n\r\n"))
        sock.sendall(OK)

    lines = (
        b"Authorization: Bearer CANARY-2\r\nx-api-key: CANARY-3\r\nX-Goog-Api-Key: CANARY-4\r\n"
        b"Cookie: CANARY-5\r\nX-Tok: CANARY-6\r\n"
    )
    with blocking_upstream(keep) as upstream:
        target = upstream.replace("http://", "http://user:CANARY-1@") + "?key=CANARY-7"
        flags = ("--log-level", "debug", "--events", "--record", str(trace))
        with command(*flags, upstream=target) as proxy:
            for framing in (b"Content-Length: 2\r\n\r\n{}", b"Content-Length: x\r\n\r\n"):
                with proxy.connect() as sock:
                    path = b"/v1/chat/completions?api_key=CANARY-8"
                    head = b"POST %b%b HTTP/1.1\r\nHost: localhost\r\n" % (proxy.prefix, path)
                    sock.sendall(head + lines + framing)
                    assert b"CANARY" not in until(sock, b"}")
            proxy.process.terminate()
            out, err = proxy.process.communicate(timeout=10)
        dead = run_dead(target)
    assert "CANARY" not in out + err + dead
    assert "x-api-key" in trace.read_text()
    assert "CANARY" not in trace.read_text().replace("CANARY-6", "")
    assert "complete" in out
    assert "model POST /v1/chat/completions" in err
    for number in (2, 3, 4, 5, 6, 7, 8):
        assert b"CANARY-%d" % number in heads[0]


def run_dead(target: str) -> str:
    """Everything a proxy says whose upstream is not there."""
    url = re.sub(r":\d+\?", ":1?", target)
    with command("--log-level", "debug", "--events", upstream=url) as proxy:
        with proxy.connect() as sock:
            sock.sendall(proxy.request(b"{}"))
            answer = until(sock, b"}").decode()
            assert "502 Bad Gateway" in answer
        proxy.process.terminate()
        out, err = proxy.process.communicate(timeout=10)
    return answer + out + err
