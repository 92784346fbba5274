"""Random interleavings of what hosts and agents do, for the exactly-once test.

A plan is drawn from a number; `Performance.perform` carries it out on a real daemon, without caring
how each step ends, and notes every request it made. The judge is tests/test_exactly_once.py.
"""

import contextlib
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tests.peers.agent import AgentLog, scripted
from tests.peers.host import Host, HostError
from tests.peers.processes import wait_until

NAMES = ("", "other")
GRACE = 0.2

SAYS = ("say", "say", "think", "update", "tool", "stderr", "many", "batch", "late")
WAITS = ("gate", "gate", "wait cancel", "wait steer", "ask", "oncancel ignore")
ENDS = ("exit 3", "kill", "half", "eof", "hang", "error", "odd", "refusal", "blank")
OPTIONS = (
    *[("with=steering",)] * 3,
    *((), ("early=3",), ("close=silent",), ("eof=ignore", "term=ignore"), ("spawn=deaf",)),
)
STEPS = {
    "prompt": 14,
    "queue": 4,
    "cancel": 3,
    "steer": 3,
    "status": 1,
    "close": 1,
    "open": 2,
    "load": 1,
    "go": 3,
    "answer": 2,
    "kill": 1,
    "begun": 3,
    "said": 4,
    "answered": 7,
}
"""What may come next, and how often."""
OVER = ("shutdown", "shutdown", "eof", "hup", "term", "int", "killed", "deaf")

Program = list[str]
Step = tuple[str, str, Any]


class Plan(NamedTuple):
    """How the sessions are opened, what is done then, and how the host ends."""

    openings: list[tuple[str, ...]]
    patient: bool
    steps: list[Step]
    patient_in_the_end: bool
    over: str

    @classmethod
    def drawn(cls, number: int) -> "Plan":
        """The plan of that number."""
        draw = random.Random(number)
        kinds, weights = list(STEPS), list(STEPS.values())
        steps: list[Step] = []
        for kind in draw.choices(kinds, weights, k=draw.randint(3, 14)):
            what: Any = None
            if kind in ("prompt", "queue"):
                what = _program(draw)
            elif kind in ("open", "load"):
                what = draw.choice(OPTIONS)
            steps.append((kind, draw.choice(NAMES), what))
        openings = [draw.choice(OPTIONS) for _ in NAMES]
        return cls(openings, draw.random() < 0.8, steps, draw.random() < 0.7, draw.choice(OVER))


def _program(draw: random.Random) -> Program:
    says = [draw.choices(SAYS, k=draw.randint(0, 3)) for _ in range(2)]
    wait = [draw.choice(WAITS)] if draw.random() < 0.3 else []
    end = [draw.choice(ENDS)] if draw.random() < 0.25 else []
    return [*says[0], *wait, *says[1], *end]


@dataclass
class Asked:
    """A request, and what it asked for."""

    ident: int
    operation: str
    session: str
    says: list[str] = field(default_factory=list)
    message_id: str | None = None


class Performance:
    """A plan carried out on one daemon."""

    def __init__(self, directory: Path, loop: str) -> None:
        self.directory = directory
        self.host = Host(directory, "--loop", loop)
        self.asked: list[Asked] = []
        self._tokens = count(1)
        self._gates: list[Path] = []

    def ask(self, operation: str, session: str, **fields: Any) -> Asked:
        said = {"says": fields.pop("says", [])}
        ident = self.host.send(operation, session=session, **fields)
        assert ident is not None
        asked = Asked(ident, operation, session, message_id=fields.get("message_id"), **said)
        self.asked.append(asked)
        return asked

    def config(self, options: tuple[str, ...]) -> dict[str, Any]:
        return {"command": scripted(*options), "close_grace": GRACE, "permission": "ask"}

    def perform(self, plan: Plan) -> None:
        """Does all of it, the end included."""
        self.host.hello()
        for name, options in zip(NAMES, plan.openings, strict=True):
            self.ask("open", name, config=self.config(options))
        if plan.patient:
            self._wait_for_answers(10)
        for kind, who, what in plan.steps:
            self._step(kind, who, what)
        for gate in self._gates:
            gate.touch()
        if plan.patient_in_the_end:
            self._answer_the_agents()
            self._wait_for_answers(0.5)
        self._end(plan.over)

    def _wait(self, condition: Callable[[], object], seconds: float) -> None:
        """Waits for what may well never come."""
        with contextlib.suppress(HostError):
            self.host.wait(condition, seconds)

    def _wait_for_answers(self, seconds: float) -> None:
        wanted = {asked.ident for asked in self.asked}
        self._wait(lambda: wanted <= {frame.get("id") for frame in self.host.frames}, seconds)

    def _step(self, kind: str, who: str, what: Any) -> None:
        match kind:
            case "prompt" | "queue":
                program, says = self._program(what)
                if kind == "prompt":
                    self.ask("prompt", who, config={"user_contents": [program]}, says=says)
                else:
                    name = f"m{next(self._tokens)}"
                    self.ask("send", who, message=program, message_id=name, says=says)
            case "open":
                self.ask("open", who, config=self.config(what))
            case "load":
                config = self.config((*what, "replay=old"))
                self.ask("load", who, session_id="old", config=config)
            case "steer":
                self.ask("steer", who, message="look")
            case "go":
                if self._gates:
                    self._gates.pop(0).touch()
            case "kill":
                self._kill_an_agent()
            case "answer":
                self._answer_the_agents()
            case "begun":
                prompts = len(self.host.log.messages("session/prompt"))
                wait_until(lambda: len(self.host.log.messages("session/prompt")) > prompts, 0.1)
            case "said":
                frames = len(self.host.frames)
                self._wait(lambda: len(self.host.frames) > frames, 0.2)
            case "answered":
                self._wait_for_answers(0.3)
            case _:
                self.ask(kind, who)

    def _program(self, program: Program) -> tuple[str, list[str]]:
        lines: list[str] = []
        says: list[str] = []
        for act in program:
            token = f"<{next(self._tokens)}>"
            match act:
                case "say" | "late":
                    lines.append(f"{act} {token}")
                    says += [token] if act == "say" else []
                case "think":
                    lines.append(f"think {token}")
                case "update":
                    lines.append('update {"sessionUpdate":"odd","text":"\\ud83d","_meta":{"n":1}}')
                case "tool":
                    lines.append(f"tool {token} completed")
                case "stderr":
                    lines.append("stderr 5000")
                case "many":
                    tokens = [f"<{next(self._tokens)}>" for _ in range(40)]
                    lines += [f"say {token}" for token in tokens]
                    says += tokens
                case "gate":
                    gate = self.directory / f"gate-{next(self._tokens)}"
                    self._gates.append(gate)
                    lines.append(f"wait {gate}")
                case "ask":
                    options = '[{"optionId":"y","kind":"allow_once","name":"y"}]'
                    lines.append(f"permission {options}")
                case "error":
                    lines.append('error {"code":-32603,"message":"no"}')
                case "odd":
                    lines.append('answer {"jsonrpc":"2.0","id":$ID,"error":"in words"}')
                case "refusal":
                    lines.append("stop refusal")
                case "blank":
                    lines.append('update {"sessionUpdate":"nothing"}')
                case "batch" if act in lines:
                    continue  # A second one would forget what the first has gathered.
                case _:
                    lines.append(act)
        return "\n".join(lines) or 'update {"sessionUpdate":"nothing"}', says

    def _kill_an_agent(self) -> None:
        records = AgentLog(self.host.log.path).events("start")
        if records:
            with contextlib.suppress(ProcessLookupError):
                os.kill(records[-1]["pid"], signal.SIGKILL)

    def _answer_the_agents(self) -> None:
        for event in self.host.events("permission"):
            fields = {"request_id": event["request_id"], "outcome": "allow"}
            self.ask("permission", event["session"], **fields)

    def _end(self, over: str) -> None:
        host = self.host
        match over:
            case "shutdown":
                self.ask("shutdown", "")
            case "eof":
                host.close_stdin()
            case "killed":
                os.killpg(host.pid, signal.SIGKILL)
            case "deaf":
                host.pause()
                host.close_stdin()
                wait_until(lambda: host.process.poll() is not None, 12)
                host.resume()
            case _:
                number = {"hup": signal.SIGHUP, "term": signal.SIGTERM, "int": signal.SIGINT}[over]
                host.signal(number)
