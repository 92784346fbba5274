"""HTTP/1.1 heads, sans-IO: bytes up to the empty line in, a checked value out, and back to bytes.

Owns: the grammar (RFC 9112, strict where leniency lets requests be smuggled) and the decision how
a message's body is framed. Rule: header names and values are kept as sent, in order, repeated ones
too; what does not fit the grammar is a BadHead that says what is wrong and where.
Why not llhttp for heads: docs/decisions/0030-http-heads-by-grammar.md.
"""

import re
from typing import Literal

import msgspec

Headers = list[tuple[bytes, bytes]]
Framing = Literal["none", "length", "chunked", "close"]

HEAD_LIMIT = 256 << 10
"""Bytes of a head; longer ones are refused (431)."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TEXT = rb"[\t\x20-\x7e\x80-\xff]"
_REQUEST = re.compile(rb"(%b) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])\r\n" % _TOKEN)
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: (%b*))?\r\n" % _TEXT)
_FIELD = re.compile(rb"(%b):[ \t]*+(%b*)\r\n" % (_TOKEN, _TEXT))
_FIELDS = re.compile(rb"(?:%b:%b*\r\n)*\r\n" % (_TOKEN, _TEXT))
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_BARE_CR = re.compile(rb"\r[^\n]")
_EMPTY = re.compile(rb"(?:\r\n)*+")
_FOLD = re.compile(rb"\r\n[ \t]")

HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate"),
        *(b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
"""The fields of one connection only (RFC 9110 §7.6.1), lower case."""


class BadHead(ValueError):
    """A head that must not be acted on. `status` is what a server answers it with."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Request(msgspec.Struct, gc=False):
    """A request's head. `target` and `headers` are as sent; `length` is that of a body framed by
    length. `fields` has the headers by lower-case name, the values of repeated ones joined by `,`.
    """

    method: str
    target: bytes
    version: int
    headers: Headers
    framing: Framing
    length: int
    keep_alive: bool
    fields: dict[bytes, bytes]


class Response(msgspec.Struct, gc=False):
    """A response's head; `headers` and `fields` as in a Request, `reason` may be empty, `raw` is
    the head as it came. Framing `close`: the body ends with the stream.
    """

    status: int
    reason: bytes
    version: int
    headers: Headers
    framing: Framing
    length: int
    keep_alive: bool
    fields: dict[bytes, bytes]
    raw: bytes


def members(value: bytes | None) -> list[bytes]:
    """The members of a list-valued field, in lower case."""
    if value is None:
        return []
    return [item.strip().lower() for item in value.split(b",") if item.strip()]


def find(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a field; `name` in lower case."""
    for field, value in headers:
        if field.lower() == name:
            return value
    return None


def without_empty_lines(data: bytes) -> bytes:
    """The data from its first line on: empty ones before a request are to be ignored."""
    return data[_EMPTY.match(data).end() :]  # pyright: ignore[reportOptionalMemberAccess]


def find_end(data: bytes, looked_at: int = 0) -> int:
    """Where the head ends, behind its empty line; 0 if it is not whole yet.

    Raises BadHead for what no head may hold: a peer that sends bare LFs, or that does not speak
    HTTP at all, would otherwise be waited for. `looked_at`: bytes of earlier calls.
    """
    if not data:
        return 0
    end = data.find(b"\r\n\r\n", max(0, looked_at - 3)) + 4
    if end >= 4:
        return end
    start = max(0, looked_at - 1)
    if _CONTROL.search(data, start):
        raise BadHead("a control byte in the head")
    if _BARE_LF.search(data, start):
        raise BadHead("a line that ends in LF without CR")
    if _BARE_CR.search(data, start):
        raise BadHead("a CR without LF")
    _check_size(data)
    return 0


def check_response(data: bytes) -> None:
    """Raises BadHead for the beginning of what can become no response's head: of a server that
    speaks another protocol the end of a head would be waited for.
    """
    if data[:7] != b"HTTP/1."[: len(data)]:
        raise BadHead("malformed status line")


def _check_size(data: bytes) -> None:
    if len(data) > HEAD_LIMIT:
        raise BadHead(f"a head of more than {HEAD_LIMIT} bytes", 431)


def parse_request(head: bytes) -> Request:
    """The head of a request; `head` ends with its empty line. Raises BadHead."""
    _check_size(head)
    line = _REQUEST.match(head)
    if line is None:
        raise _explain(head, "request line")
    headers, fields = _read_fields(head, line.end())
    version = int(line[3])
    host = fields.get(b"host")
    if host is None and version:
        raise BadHead("no Host header")
    if host is not None and b"," in host:
        raise BadHead("more than one Host header")
    framing, length = _framing(fields, version)
    if framing == "close":
        framing = "none"
    keep = version == 1 and not _closes(fields)
    return Request(line[1].decode(), line[2], version, headers, framing, length, keep, fields)


def parse_response(head: bytes, method: str) -> Response:
    """The head of the response to a request of that method. Raises BadHead."""
    _check_size(head)
    line = _STATUS.match(head)
    if line is None:
        raise _explain(head, "status line")
    headers, fields = _read_fields(head, line.end())
    version, status = int(line[1]), int(line[2])
    framing, length = _framing(fields, version)
    if method == "HEAD" or status < 200 or status in (204, 304):
        framing = "none"
    keep = version == 1 and framing != "close" and not _closes(fields)
    return Response(status, line[3] or b"", version, headers, framing, length, keep, fields, head)


def _closes(fields: dict[bytes, bytes]) -> bool:
    options = fields.get(b"connection")
    return options is not None and b"close" in members(options)


def _read_fields(head: bytes, start: int) -> tuple[Headers, dict[bytes, bytes]]:
    if _FIELDS.fullmatch(head, start) is None:
        raise _explain(head, f"header line {_bad_line(head, start)}")
    headers: Headers = _FIELD.findall(head, start)
    if b" \r\n" in head or b"\t\r\n" in head:
        headers = [(name, value.rstrip(b" \t")) for name, value in headers]
    fields = {name.lower(): value for name, value in headers}
    if len(fields) < len(headers):
        fields = {}
        for name, value in headers:
            lower = name.lower()
            fields[lower] = fields[lower] + b"," + value if lower in fields else value
    return headers, fields


def _bad_line(head: bytes, start: int) -> int:
    """The number of the first header line that is none."""
    number = 1
    while (field := _FIELD.match(head, start)) is not None:
        start = field.end()
        number += 1
    return number


def _explain(head: bytes, where: str) -> BadHead:
    """What keeps these bytes from being a head: the common faults by name."""
    if _CONTROL.search(head):
        return BadHead("a control byte in the head")
    if _BARE_LF.search(head):
        return BadHead("a line that ends in LF without CR")
    if _BARE_CR.search(head):
        return BadHead("a CR without LF")
    if _FOLD.search(head):
        return BadHead("a folded header line")
    return BadHead(f"malformed {where}")


def _framing(fields: dict[bytes, bytes], version: int) -> tuple[Framing, int]:
    size, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None:
        if size is not None:
            raise BadHead("both Content-Length and Transfer-Encoding")
        if version == 0:
            raise BadHead("Transfer-Encoding in HTTP/1.0")
        if coding.lower() != b"chunked":
            raise BadHead("a Transfer-Encoding other than chunked", 501)
        return "chunked", 0
    if size is None:
        return "close", 0
    if size.isdigit() and len(size) <= 18:
        return "length", int(size)
    if b"," in size:
        raise BadHead("more than one Content-Length")
    raise BadHead("a Content-Length that is not a number")


def request_bytes(method: str, target: bytes, headers: Headers) -> bytes:
    """The head of a request, as bytes."""
    lines = b"".join([b"%b: %b\r\n" % pair for pair in headers])
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method.encode(), target, lines)


def response_bytes(status: int, reason: bytes, headers: Headers) -> bytes:
    """The head of a response, as bytes."""
    lines = b"".join([b"%b: %b\r\n" % pair for pair in headers])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, reason, lines)
