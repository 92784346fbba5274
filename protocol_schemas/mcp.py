"""MCP servers as they are configured, and what the proxy itself reads of a tool.

`FileEntry` is one value of the usual `mcpServers` file; its policy keys are also what the host
gives per server as `config.mcp`. Unknown keys are not an error: `known_keys` tells them apart.
Times are in seconds.
"""

from typing import Annotated, Literal

import msgspec

Delivery = Literal["at-least-once", "safe", "never"]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Backoff(msgspec.Struct, frozen=True):
    """The waits between attempts: doubling from `initial` to `max`, jitter on top."""

    initial: NotNegative = 0.5
    max: NotNegative = 30.0


class ToolPolicy(msgspec.Struct, frozen=True):
    """What is said of one tool in place of its server's policy."""

    delivery: Delivery | None = None
    timeout: Positive | None = None


class Policy(msgspec.Struct, kw_only=True):
    """How a server's calls are made: our own keys, all optional."""

    delivery: Delivery = "at-least-once"
    tools: dict[str, ToolPolicy] = {}
    attempts: Count = 6
    timeout: Positive = 600.0
    total_timeout: Positive | None = None
    connect_timeout: Positive = 5.0
    backoff: Backoff = Backoff()
    max_result_bytes: Count = 256 << 20
    max_parallel: Count = 64
    keep_alive: bool = False
    proxy: bool = True
    """In the daemon, false gives the agent this server as it was given: the off switch."""


class FileEntry(Policy, kw_only=True):
    """One server of an `mcpServers` file: an address, or a command."""

    type: Literal["http", "streamable-http", "streamableHttp", "sse", "stdio"] | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    disabled: bool = False


class Pair(msgspec.Struct):
    """A header or an environment variable, as ACP writes them."""

    name: str
    value: str


class AcpEntry(msgspec.Struct, kw_only=True):
    """One entry of `session/new`'s `mcpServers` (ACP 1); without `type` it is a command."""

    name: str
    type: Literal["http", "sse", "stdio"] = "stdio"
    url: str | None = None
    headers: list[Pair] = []
    command: str | None = None
    args: list[str] = []
    env: list[Pair] = []


class Hints(msgspec.Struct, rename="camel", frozen=True):
    """A tool's `annotations` as far as they bear on replay; None where nothing is said."""

    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None


def known_keys(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The keys a struct reads, as they are written in JSON."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))
