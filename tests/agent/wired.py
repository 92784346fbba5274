"""A client whose reader runs, the agent at its other end, and a session that notes what comes."""

from contextlib import AsyncExitStack
from typing import Any

import anyio

from bridge.agent.client import AgentClient
from bridge.agent.updates import Incoming
from bridge.rpc.inbound import Inbound
from bridge.wire.jsonrpc import Notification, Request
from tests.rpc.pair import connected


class Session:
    """A Sink that notes what came for it."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def update(self, incoming: Incoming) -> None:
        self.came.append(incoming.params.update.kind)

    def request(self, request: Request, client: AgentClient) -> None:
        self.came.append(request.method)
        client.connection.reply(request.id, "served")

    def notification(self, notification: Notification) -> None:
        self.came.append(notification.method)

    def done(self, result: dict[str, Any]) -> None:
        self.came.append(("done", result))


class Wired:
    """A client whose reader runs, and the agent at the other end."""

    async def __aenter__(self) -> "Wired":
        self._stack = AsyncExitStack()
        connection, self.agent = await self._stack.enter_async_context(connected())
        self.tasks = await self._stack.enter_async_context(anyio.create_task_group())
        inbound = Inbound(connection, self.tasks)
        self.client = AgentClient(connection, inbound, name="", room=self._room)
        self.tasks.start_soon(self._run)
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self.agent.leave()
        await self._stack.__aexit__(*failure)

    async def _room(self) -> None:
        pass

    async def _run(self) -> None:
        await self.client.connection.run(self.client)
        self.client.connection.end("the agent ended")

    async def caught_up(self) -> None:
        await self.client.connection.caught_up(5)
        await anyio.wait_all_tasks_blocked()

    async def open(self, session_id: str) -> Session:
        session = Session()
        self.tasks.start_soon(self.client.create, "session/new", {}, session, session.done)
        call = await self.agent.heard()
        self.agent.say({"id": call["id"], "result": {"sessionId": session_id}})
        await self.caught_up()
        assert session.came == [("done", {"sessionId": session_id})]
        session.came.clear()
        return session


def update(session_id: str, kind: str = "x", **more: Any) -> dict[str, Any]:
    body = {"sessionId": session_id, "update": {"sessionUpdate": kind, **more}}
    return {"method": "session/update", "params": body}
