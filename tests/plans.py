"""Random interleavings of what hosts and agents do, for the exactly-once test.

A plan is a list of steps; `perform` carries it out on a real daemon, without caring how each ends,
and notes every request it made. The judge is tests/test_exactly_once.py.
"""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.peers.agent import AgentLog, scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until

NAMES = ("", "other")
GRACE = 0.3

SAYS = st.sampled_from(["say", "think", "update", "tool", "stderr", "many", "batch", "late"])
WAITS = st.sampled_from(["gate", "wait cancel", "wait steer", "ask", "oncancel ignore"])
ENDS = st.sampled_from(
    [*["end"] * 6, "exit 3", "kill", "half", "eof", "hang", "error", "odd", "refusal", "blank"]
)
PROGRAMS = st.tuples(
    st.lists(SAYS, max_size=3), st.none() | WAITS, st.lists(SAYS, max_size=2), ENDS
)
OPTIONS = st.sampled_from(
    [(), (), ("with=steering",), ("early=3",), ("close=silent",), ("eof=ignore", "term=ignore")]
)
WHO = st.sampled_from(NAMES)
STEPS = st.one_of(
    st.tuples(st.just("prompt"), WHO, PROGRAMS),
    st.tuples(st.just("prompt"), WHO, PROGRAMS),
    st.tuples(st.just("queue"), WHO, PROGRAMS),
    st.tuples(st.sampled_from(["cancel", "steer", "status", "close"]), WHO, st.none()),
    st.tuples(st.sampled_from(["cancel", "go", "kill", "settle", "answer"]), WHO, st.none()),
    st.tuples(st.just("open"), WHO, OPTIONS),
    st.tuples(st.just("load"), WHO, OPTIONS),
)
OVER = st.sampled_from(["shutdown", "shutdown", "eof", "hup", "term", "int", "killed", "deaf"])
PLANS = st.tuples(OPTIONS, OPTIONS, st.lists(STEPS, min_size=2, max_size=12), OVER)


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

    def perform(self, plan: tuple[Any, ...]) -> str:
        """Does all of it; gives how the daemon was ended."""
        *openings, steps, over = plan
        self.host.hello()
        for name, options in zip(NAMES, openings, strict=True):
            self.ask("open", name, config=self.config(options))
        for kind, who, what in steps:
            self._step(kind, who, what)
        for gate in self._gates:
            gate.touch()
        self._end(over)
        return over

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
            case "settle":
                status = self.ask("status", who)
                with contextlib.suppress(AssertionError):
                    self.host.answer(status.ident, 10)
            case _:
                self.ask(kind, who)

    def _program(self, program: tuple[list[str], str | None, list[str], str]) -> tuple[str, Any]:
        before, wait, after, end = program
        lines: list[str] = []
        says: list[str] = []
        for act in [*before, *([wait] if wait else []), *after, end]:
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
                case "end":
                    continue
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
