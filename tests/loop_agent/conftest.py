"""The agents and model servers of these tests: one of each for a module and a loop."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.loop_agent.acp_client import AcpClient
from tests.loop_agent.chat_server import ChatServer

Start = Callable[..., AcpClient]


@pytest.fixture(scope="module", params=["asyncio", "uvloop", "trio"])
def loop(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def chat_server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def chat(chat_server: ChatServer) -> Iterator[ChatServer]:
    """The model server; a test uses every answer it lays down."""
    yield chat_server
    chat_server.reset()


@pytest.fixture(scope="module")
def shared_agent(
    chat_server: ChatServer, loop: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AcpClient]:
    directory = tmp_path_factory.mktemp("agent")
    agent = AcpClient(directory, "--tools", "bash,edit,search", url=chat_server.url, loop=loop)
    agent.initialize()
    yield agent
    assert agent.end() == 0


@pytest.fixture
def agent(shared_agent: AcpClient, chat: ChatServer) -> AcpClient:
    """An agent with all its tools, initialized, shared by the module's tests."""
    shared_agent.policy = "allow_once"
    shared_agent.asked.clear()
    return shared_agent


@pytest.fixture
def start(chat: ChatServer, loop: str, tmp_path: Path) -> Iterator[Start]:
    """Starts agents of a test's own; they must end well."""
    started: list[AcpClient] = []

    def begin(*arguments: str, initialize: bool = True, **options: str) -> AcpClient:
        agent = AcpClient(tmp_path, *arguments, loop=loop, **{"url": chat.url, **options})
        started.append(agent)
        if initialize:
            agent.initialize()
        return agent

    yield begin
    for agent in started:
        if agent.process.poll() is None:
            assert agent.end() == 0
