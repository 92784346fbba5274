"""Case 67, seen from outside: what large bodies cost the proxy in memory."""

import re
import socket
import threading

from tests.model.command import blocking_upstream, command, swallow, until

MIB = 1 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def serve(sock: socket.socket) -> None:
    """Takes requests of any size and forgets them."""
    while head := until(sock, b"\r\n\r\n"):
        start = head.index(b"\r\n\r\n") + 4
        size = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])  # type: ignore[index]
        swallow(sock, size - (len(head) - start))
        sock.sendall(OK)


def test_twenty_parallel_bodies_of_ten_megabytes_are_held_once_each() -> None:
    image = b"A" * (10 * MIB)
    body = (
        b'{"messages":[{"role":"user","content":"%b"},{"role":"assistant","content":null}]}' % image
    )
    with blocking_upstream(serve) as upstream, command(upstream=upstream) as proxy:
        before = proxy.peak_mib()
        answers: list[bytes] = []

        def post() -> None:
            with proxy.connect() as sock:
                sock.sendall(proxy.request(body))
                answers.append(until(sock, b"{}"))

        threads = [threading.Thread(target=post) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [OK] * 20
        assert proxy.peak_mib() - before < 20 * 10 * 1.5


def test_what_is_not_read_is_not_held() -> None:
    size = 512 * MIB
    with blocking_upstream(serve) as upstream, command(upstream=upstream) as proxy:
        before = proxy.peak_mib()
        with proxy.connect() as sock:
            sock.sendall(proxy.request(size, b"/v1/files"))
            piece = bytes(MIB)
            for _ in range(512):
                sock.sendall(piece)
            assert until(sock, b"{}") == OK
        assert proxy.peak_mib() - before < 32


def test_a_slow_reader_of_a_large_answer_costs_no_memory() -> None:
    size = 256 * MIB
    done = threading.Event()

    def pour(sock: socket.socket) -> None:
        until(sock, b"\r\n\r\n")
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        piece = bytes(MIB)
        for _ in range(256):
            sock.sendall(piece)
        done.set()

    with blocking_upstream(pour) as upstream, command(upstream=upstream) as proxy:
        before = proxy.peak_mib()
        with proxy.connect() as sock:
            sock.sendall(proxy.request(b"{}"))
            head = until(sock, b"\r\n\r\n")
            assert not done.wait(0.5), "the upstream was not held back"
            swallow(sock, size - (len(head) - head.index(b"\r\n\r\n") - 4))
        assert done.wait(30)
        assert proxy.peak_mib() - before < 32
