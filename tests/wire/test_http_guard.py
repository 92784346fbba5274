"""The Host header and the path's first segment."""

import re

import pytest

from bridge.wire.http_guard import is_local, new_segment, split


@pytest.mark.parametrize(
    "host",
    [b"127.0.0.1:8080", b"localhost", b"LocalHost:1", b"[::1]:80", b"[::1]", b"127.0.0.1", None],
)
def test_the_loopback_by_any_port_is_local(host: bytes | None) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host",
    [
        *(b"", b"example.com", b"127.0.0.1.example.com", b"localhost:80@evil", b"::1"),
        *(b"evil:127.0.0.1", b"localhost:x", b"[::2]:80", b"127.0.0.2"),
    ],
)
def test_any_other_host_is_foreign(host: bytes) -> None:
    assert not is_local(host)


@pytest.mark.parametrize(
    "target, segment, rest",
    [
        (b"/abc/v1/x?q=/1", "abc", b"/v1/x?q=/1"),
        (b"/abc", "abc", b""),
        (b"/abc?q=a/b", "abc", b"?q=a/b"),
        (b"/abc//x/../y", "abc", b"//x/../y"),
        (b"/", "", b""),
        (b"//abc", "", b"/abc"),
        (b"*", "", b"*"),
        (b"http://abc/x", "", b"http://abc/x"),
    ],
)
def test_a_target_is_split_without_being_resolved(target: bytes, segment: str, rest: bytes) -> None:
    assert split(target) == (segment, rest)


def test_segments_are_unguessable_and_need_no_escaping() -> None:
    made = {new_segment() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"[\w-]{22,}", segment) for segment in made)
