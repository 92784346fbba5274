"""The least an ACP agent can be, so that what is measured is the daemon.

Started as `python -I -S agent.py`; imports nothing that costs. The prompt's text says what to do:

    flood KIND COUNT SIZE    updates: message, thought (chunks of SIZE) or tool (4 KiB and the like)
    line SIZE                one message chunk of SIZE characters
    ask COUNT                permission requests, one after the other; says their seconds
    anything else            says ok
"""

import posix
import sys
from _json import make_scanner  # the C scanner alone: json itself takes longer than this agent
from time import monotonic


class Plain:
    """What the scanner wants to know: JSON as it is."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict = {}  # noqa: RUF012 (the scanner's own)


SCAN = make_scanner(Plain)
WORDS = "the quick brown fox jumps over the lazy dog and runs on "
UPDATE = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"b","update":%s}}\n'
CHUNK = '{"sessionUpdate":"agent_%s_chunk","content":{"type":"text","text":"%s"}}'
TOOL = (
    '{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress",'
    '"content":[{"type":"content","content":{"type":"text","text":"%s"}}]}'
)
ASK = (
    '{"jsonrpc":"2.0","id":"ask-%d","method":"session/request_permission","params":'
    '{"sessionId":"b","toolCall":{"toolCallId":"t","title":"run","rawInput":{"command":"ls"}},'
    '"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},'
    '{"optionId":"n","name":"No","kind":"reject_once"}]}}\n'
)


def write(text: str) -> None:
    data = memoryview(text.encode())
    while data:
        data = data[posix.write(1, data) :]


def say(text: str) -> None:
    write(UPDATE % (CHUNK % ("message", text)))


def flood(kind: str, count: int, size: int) -> None:
    text = (WORDS * (size // len(WORDS) + 1))[:size]
    line = UPDATE % (TOOL % text if kind == "tool" else CHUNK % (kind, text))
    many = max(1, 60_000 // len(line))
    for _ in range(count // many):
        write(line * many)
    write(line * (count % many))
    if kind != "message":
        say("done")


def ask(count: int, lines) -> None:  # an iterator; the types cost an import
    took = []
    for number in range(count):
        start = monotonic()
        write(ASK % number)
        next(lines)
        took.append(f"{monotonic() - start:.9f}")
    say(" ".join(took))


def turn(text: str, lines) -> None:  # an iterator; the types cost an import
    word, *rest = text.split(" ") if len(text) < 200 else ["long"]
    if word == "flood":
        flood(rest[0], int(rest[1]), int(rest[2]))
    elif word == "line":
        say("x" * int(rest[0]))
    elif word == "ask":
        ask(int(rest[0]), lines)
    else:
        say("ok")


def main() -> None:
    lines = iter(sys.stdin.buffer.readline, b"")
    for line in lines:
        message = SCAN(line.decode(), 0)[0]
        method, result = message.get("method"), "{}"
        if "id" not in message or method is None:
            continue
        if method == "initialize":
            result = '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}'
        elif method == "session/new":
            result = '{"sessionId":"b"}'
        elif method == "session/prompt":
            turn(message["params"]["prompt"][-1]["text"], lines)
            result = '{"stopReason":"end_turn"}'
        write(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}\n')


main()
