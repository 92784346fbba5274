"""Updates over a real pipe: their order, and a client that reads slowly."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from bridge.io.pipes import FdReader, FdWriter
from bridge.loop_agent.front import Front, chunk, text
from bridge.rpc.connection import Connection

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def front() -> AsyncGenerator[tuple[Front, FdReader]]:
    """A front, and the client's end of its pipe."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    reader, writer, client = FdReader(ours_in), FdWriter(ours_out), FdReader(theirs_in)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        yield Front(Connection(reader, writer), writer), client
        tasks.cancel_scope.cancel()
    for end in (reader, writer, client):
        end.close()
    os.close(theirs_out)


async def test_updates_arrive_in_their_order() -> None:
    async with front() as (ours, client):
        for number in range(100):
            ours.update("s", chunk("agent_message_chunk", text(str(number)), "m"))
        received = b""
        while received.count(b"\n") < 100:
            received += await client.receive()
    said = [json.loads(line)["params"]["update"] for line in received.splitlines()]
    assert [update["content"]["text"] for update in said] == [str(n) for n in range(100)]
    assert said[0] == {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "0"},
        "messageId": "m",
    }


async def test_a_turn_waits_for_a_client_that_does_not_read() -> None:
    async with front() as (ours, client):
        await ours.room()
        ours.update("s", {"big": "x" * (3 << 20)})
        waited = anyio.Event()

        async def wait() -> None:
            await ours.room()
            waited.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert not waited.is_set()
            received = b""
            while not received.endswith(b"\n"):
                received += await client.receive()
            await waited.wait()
