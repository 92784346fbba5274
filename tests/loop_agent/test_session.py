"""An open session: what it keeps, its modes."""

import os
from pathlib import Path

import anyio
import pytest

from bridge.errors import RequestFailed
from bridge.io.family import Family
from bridge.loop_agent.mcp_servers import McpServers
from bridge.loop_agent.session import Session
from bridge.loop_agent.state import State
from bridge.loop_agent.store import Store
from bridge.loop_agent.toolbox import Toolbox
from bridge.loop_agent.tools.edit import Edit
from protocol_schemas.session_file import Head, Mode, Title

pytestmark = pytest.mark.anyio


async def session(directory: Path, *, tools: bool) -> tuple[Session, Store]:
    head = Head("s", "/tmp", "2026-01-01T00:00:00Z")
    store, box = Store(directory), Toolbox()
    if tools:
        box.add([Edit("/tmp")], "the agent")
    async with anyio.create_task_group() as group:
        servers = McpServers([], os.getcwd(), Family(), group)
    return Session(State(head), store.create([head]), box, servers), store


async def test_what_is_recorded_is_on_disk_and_in_the_state(tmp_path: Path) -> None:
    ours, store = await session(tmp_path, tools=True)
    ours.record(Title("t"))
    ours.set_mode("auto")
    assert (ours.state.title, ours.state.mode) == ("t", "auto")
    assert store.read("s")[1:] == [Title("t"), Mode("auto")]


async def test_there_are_modes_only_where_something_asks(tmp_path: Path) -> None:
    ours, store = await session(tmp_path, tools=False)
    assert not ours.asks
    with pytest.raises(RequestFailed, match="there is: none"):
        ours.set_mode("ask")
    assert len(store.read("s")) == 1


async def test_without_a_turn_there_is_nothing_to_end(tmp_path: Path) -> None:
    ours, _ = await session(tmp_path, tools=False)
    await ours.end_turn()
    assert ours.turn is None
