"""Where clients are tried: one run of the client for each scenario, and what the agent wrote down.

Owns: the command of the client and the records. Rule: each scenario is run once, when the first
check asks for it; every check reads the same records. docs/conformance.md says what a client's
command gets and has to do.
"""

import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio.abc import TaskGroup

from conformance import process
from conformance.check import Broken, NotTried, Suite
from conformance.judge import Fault, Judge, Message, key, shown
from conformance.wire import Json, mapping

PEER = Path(__file__).with_name("peer.py")
PROMPT = "Say hello."
SHOWN = 8
PATIENCE = 30.0
"""Seconds at least that a client may take for a scenario."""


@dataclass
class Play:
    """One scenario, played: every message in order, and how it ended."""

    scenario: str
    records: list[Json]
    sent: list[Message] = field(default_factory=list[Message])
    """What the client wrote."""
    told: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    """All messages in order, each `in` (from the client) or `out`."""
    steps: list[str] = field(default_factory=list[str])
    ends: list[str] = field(default_factory=list[str])
    written: str | None = None
    """What the file holds that the client was asked to write."""
    exit_code: int | None = None
    state: str = ""
    left: list[str] | None = None
    """What still lives after the client's end; None where that cannot be told."""

    def requests(self, method: str) -> list[Message]:
        return [message for message in self.sent if message.get("method") == method]

    def answer(self, ident: str | int) -> Message:
        """The client's response to the agent's request; an empty one if there is none."""
        for message in self.sent:
            if "method" not in message and key(message.get("id")) == key(ident):
                return message
        return {}

    def outcome(self, ident: str | int) -> Json:
        """The outcome in the answer to a permission request."""
        return mapping(mapping(self.answer(ident).get("result")).get("outcome"))

    def survived(self, step: str) -> None:
        """Raises unless the client was still there after that step."""
        if step not in self.steps:
            raise NotTried(f"the turn did not get as far as this: {self.state}")
        if not self.answer(f"ping-{step}"):
            raise Broken(f"no sign of life after it: {self.state}", self.around(step))

    def around(self, step: str) -> list[str]:
        """The traffic from that step on."""
        places = [n for n, record in enumerate(self.records) if record.get("step") == step]
        return lines(self.records[places[0] :] if places else self.records)[:SHOWN]

    @property
    def capabilities(self) -> Json:
        found = self.requests("initialize")
        return mapping(mapping(found[0].get("params")).get("clientCapabilities")) if found else {}


def lines(records: Sequence[Json]) -> list[str]:
    """Records as lines of traffic: `<` is what came from the client."""
    marks = {"in": "<", "out": ">"}
    return [
        f"{marks[kind]} {shown(str(record[kind]).encode(errors='surrogateescape'))}"
        for record in records
        for kind in marks
        if kind in record
    ]


class Lab:
    """One run of the suite."""

    def __init__(self, command: Sequence[str], timeout: float, tasks: TaskGroup) -> None:
        self.timeout = timeout
        self.faults: list[Fault] = []
        self._command = list(command)
        self._tasks = tasks
        self._plays: dict[str, Play] = {}
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.directory = Path(self._directory.name).resolve()

    def mark(self) -> int:
        return 0

    def since(self, mark: int) -> list[str]:
        return []

    async def tidy(self) -> None:
        """Each play has tidied up behind itself."""

    async def close(self) -> None:
        self._directory.cleanup()

    async def play(self, scenario: str) -> Play:
        """What the client did in that scenario; it is run if it was not yet."""
        if scenario not in self._plays:
            self._plays[scenario] = await self._run(scenario)
        return self._plays[scenario]

    async def session(self, scenario: str = "turn") -> Play:
        """The same, if the client has got as far as a prompt."""
        play = await self.play(scenario)
        if not play.requests("session/prompt"):
            raise NotTried(f"the client sent no session/prompt: {play.state}")
        return play

    async def _run(self, scenario: str) -> Play:
        log = self.directory / f"{scenario}.ndjson"
        log.touch()
        agent = [sys.executable, "-I", "-S", str(PEER), str(log), scenario]
        agent.append(f"{self.timeout / 4:g}")
        child = await process.start(
            substituted(self._command, agent),
            self._tasks,
            environment={
                "CONFORMANCE_AGENT": shlex.join(agent),
                "CONFORMANCE_SCENARIO": scenario,
                "CONFORMANCE_PROMPT": PROMPT,
                "CONFORMANCE_CWD": str(self.directory),
            },
        )
        self._tasks.start_soon(_drain, child)
        await child.close_stdin()
        code = await child.exit_code(max(self.timeout * 2, PATIENCE))
        state = child.state()
        left: list[str] | None = None
        with suppress(NotTried):
            left = await child.survivors(min(self.timeout, 5.0)) if code is not None else None
        await child.end(0.1 if code is not None else 1.0)
        records = [json.loads(line) for line in log.read_text().splitlines()]
        play = Play(scenario, records, exit_code=code, state=state, left=left)
        self._judge(play)
        return play

    def _judge(self, play: Play) -> None:
        judge = Judge("client", self.faults)
        for record in play.records:
            if "in" in record:
                data = str(record["in"]).encode(errors="surrogateescape")
                message = judge.line(data) if data.strip() else None
                if message is not None:
                    play.sent.append(message)
                    play.told.append(("in", message))
            elif "out" in record:
                said: Any = json.loads(record["out"])
                judge.heard(said)
                play.told.append(("out", said))
            elif "step" in record:
                play.steps.append(str(record["step"]))
            elif "written" in record:
                play.written = record["written"]
            elif "end" in record:
                play.ends.append(str(record["end"]))


def substituted(command: Sequence[str], agent: Sequence[str]) -> list[str]:
    """The client's command: `{}` becomes the agent's words, `{agent}` the same, quoted."""
    words: list[str] = []
    for word in command:
        words += agent if word == "{}" else [word.replace("{agent}", shlex.join(agent))]
    return words


async def _drain(child: process.Child) -> None:
    async for _ in child.stdout:
        pass


SUITE: Suite[Lab] = Suite("client")
"""The list that the modules beside this one add their checks to; `suite` puts them in order."""
