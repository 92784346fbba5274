"""The scripted model server: four wires on loopback, and a record of every request.

    async with scripted_model() as model:         # in a program or a test
        ... OPENAI_BASE_URL = model.url + "/v1" ...
        model.requests[0].body

    python -m bridge.scripted.model [--port N] [--log FILE] [--strict null|empty] [--no-models]

As a process it prints one line, `{"url": ...}`, and runs until it is ended; the log has one JSON
object a line: a request, and later, under the same `number`, how it ended (`outcome`).
plan.py has the directives. It answers `/v1/chat/completions`, `/v1/responses`, `/v1/messages`
(and `/count_tokens` under it), Gemini's `models/NAME:streamGenerateContent` and its kin, and,
without `--no-models`, `/v1/models`; with or without the `/v1`.
"""

import argparse
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio

from bridge.io.httpserver import Exchange, listen
from bridge.scripted import anthropic, chat, gemini, responses
from bridge.scripted.plan import Plan, Tool, Turn, decide, objects
from bridge.wire import codec

BODY_LIMIT = 1 << 28
Decide = Callable[[list[Turn], list[Tool], set[int]], Plan]
"""What is answered to a conversation; plan.py's `decide` is one."""
WIRES: dict[str, ModuleType] = {
    **{wire.PATH: wire for wire in (chat, responses, anthropic, gemini)},
    gemini.STREAMED: gemini,
}
MODEL = {
    "id": "scripted",
    "object": "model",
    "type": "model",
    "display_name": "scripted",
    "created": 0,
    "created_at": "2026-01-01T00:00:00Z",
    "owned_by": "loopback",
}


@dataclass
class Request:
    """One request as it came, and how it ended: `open`, `answered`, or `left` (by the client)."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    outcome: str = "open"


@dataclass
class ScriptedModel:
    """A running server: its address, and what it was asked."""

    url: str
    strict: str = ""
    log: Path | None = None
    decide: Decide = decide
    lists: bool = True
    """Whether it has a list of models."""
    requests: list[Request] = field(default_factory=list[Request])
    failed: set[int] = field(default_factory=set[int])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def until(self, condition: Callable[["ScriptedModel"], object]) -> None:
        """Waits for a request, or the end of one, that makes the condition true."""
        while not condition(self):
            await self._changed.wait()

    async def handle(self, exchange: Exchange) -> None:
        """Answers one request; the handler for `bridge.io.httpserver`."""
        data = await exchange.read(BODY_LIMIT)
        try:
            body = codec.decode(data) if data else None
        except codec.JSONError as error:
            await _respond(exchange, 400, chat.error(400, f"not JSON: {error}"))
            return
        headers = {name.decode().lower(): value.decode() for name, value in exchange.headers}
        target = exchange.target.decode("latin-1")
        request = Request(len(self.requests) + 1, exchange.method, target, headers, body)
        self.requests.append(request)
        self._note(request, vars(request))
        try:
            await self._answer(exchange, request)
            request.outcome = "answered"
        finally:
            if request.outcome == "open":
                request.outcome = "left"
            self._note(request, {"number": request.number, "outcome": request.outcome})

    def _note(self, request: Request, record: dict[str, Any]) -> None:
        if self.log is not None:
            with self.log.open("ab") as file:
                file.write(codec.encode(record) + b"\n")
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _answer(self, exchange: Exchange, request: Request) -> None:
        path = exchange.path.rstrip("/")
        if path.endswith("/models") and self.lists:
            await _respond(exchange, 200, {"object": "list", "data": [MODEL], "has_more": False})
            return
        if path.endswith("/count_tokens"):
            await _respond(exchange, 200, {"input_tokens": 11})
            return
        if path.endswith(":countTokens"):
            await _respond(exchange, 200, {"totalTokens": 11})
            return
        wire = next((wire for suffix, wire in WIRES.items() if path.endswith(suffix)), None)
        bodies = objects([request.body])
        if wire is None or exchange.method != "POST" or not bodies:
            await _respond(exchange, 404, chat.error(404, "no such route on the scripted model"))
            return
        body = bodies[0]
        refusal = chat.refusal(body, self.strict) if wire is chat else None
        if refusal is not None:
            await _respond(exchange, 400, refusal)
            return
        plan = self.decide(wire.turns(body), wire.tools(body), self.failed)
        if plan.status != 200:
            await _respond(exchange, plan.status, wire.error(plan.status, "a scripted failure"))
        elif body.get("stream") or path.endswith(gemini.STREAMED):
            await _stream(exchange, wire, plan, body, request.number)
        else:
            await _respond(exchange, 200, wire.answer(plan, body, request.number))


async def _respond(exchange: Exchange, status: int, value: dict[str, Any]) -> None:
    await exchange.respond(status, [(b"Content-Type", b"application/json")], codec.encode(value))


async def _stream(
    exchange: Exchange, wire: ModuleType, plan: Plan, body: dict[str, Any], number: int
) -> None:
    await exchange.start(200, [(b"Content-Type", b"text/event-stream")])
    for part in wire.events(plan, body, number):
        if isinstance(part, float):
            await anyio.sleep(part)
        else:
            await exchange.send(part)
    await exchange.finish()


@asynccontextmanager
async def scripted_model(
    port: int = 0,
    *,
    strict: str = "",
    log: Path | None = None,
    script: Decide = decide,
    lists: bool = True,
) -> AsyncGenerator[ScriptedModel]:
    """A server for as long as the context lasts. `strict` is chat.refusal's; `script` decides."""
    async with listen("127.0.0.1", port) as server, anyio.create_task_group() as tasks:
        model = ScriptedModel(f"http://127.0.0.1:{server.port}", strict, log, script, lists)
        tasks.start_soon(server.serve, model.handle)
        yield model
        tasks.cancel_scope.cancel()


async def _run(arguments: argparse.Namespace) -> None:
    async with scripted_model(
        arguments.port, strict=arguments.strict, log=arguments.log, lists=not arguments.no_models
    ) as model:
        print(codec.encode({"url": model.url}).decode(), flush=True)
        await anyio.sleep_forever()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bridge.scripted.model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--strict", choices=["", "null", "empty"], default="")
    parser.add_argument("--no-models", action="store_true")
    try:
        anyio.run(_run, parser.parse_args(arguments))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
