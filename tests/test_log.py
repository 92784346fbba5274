"""The log: one line a record, to a sink that may be replaced, whatever is in it."""

import logging

import pytest

from bridge import log


@pytest.fixture
def lines():
    seen: list[bytes] = []
    sink, level = log._handler.sink, log.log.level
    log.configure("info", seen.append)
    yield seen
    log._handler.sink = sink
    log.log.setLevel(level)


def test_a_record_is_one_line(lines: list[bytes]) -> None:
    log.log.warning("session %r: %s", "s", "two\nlines")
    assert lines == [b"acp-mcp-bridge: WARNING: session 's': two\n  lines\n"]


def test_what_utf_8_cannot_say_is_escaped(lines: list[bytes]) -> None:
    log.log.error("x \ud83d y é")
    assert lines == ["acp-mcp-bridge: ERROR: x \\ud83d y é\n".encode()]


def test_the_level_is_kept(lines: list[bytes]) -> None:
    log.log.debug("unseen")
    assert lines == []
    assert not log.debugging()
    log.configure("debug")
    assert log.debugging()


def test_it_is_not_said_twice_where_the_root_logger_has_a_handler(lines: list[bytes]) -> None:
    heard: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = heard.append
    logging.getLogger().addHandler(handler)
    try:
        log.log.warning("ours alone")
    finally:
        logging.getLogger().removeHandler(handler)
    assert (heard, len(lines)) == ([], 1)
