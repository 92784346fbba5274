"""The ACP v1 requests an agent reads: `x-side: agent` of the official schema, params only.

Rule: content blocks stay as they came, since sessions replay them; unknown fields are ignored.
Decoded by `bridge.loop_agent`; the shapes are those of ACP's v1 schema.json.
"""

from typing import Any

import msgspec


class Request(msgspec.Struct, rename="camel"):
    """All of them: camelCase on the wire."""


class Initialize(Request):
    protocol_version: int


class NamedValue(Request):
    """An HTTP header or an environment variable."""

    name: str
    value: str


class McpServer(Request):
    """One server, of any transport: `url` and `headers`, or `command`, `args` and `env`."""

    name: str
    type: str = "stdio"
    url: str | None = None
    headers: list[NamedValue] | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[NamedValue] | None = None


class SystemPrompt(Request):
    """The client's instructions. `mode`: `append` to the agent's own, or `override` them."""

    mode: str
    content: list[dict[str, Any]]


class NewSession(Request):
    cwd: str
    mcp_servers: list[McpServer]
    system_prompt: SystemPrompt | None = None


class OpenSession(Request):
    """session/load, session/resume and session/fork."""

    session_id: str
    cwd: str
    mcp_servers: list[McpServer] | None = None
    system_prompt: SystemPrompt | None = None


class ListSessions(Request):
    cwd: str | None = None
    cursor: str | None = None


class OfSession(Request):
    """session/close, session/delete and session/cancel."""

    session_id: str


class SetMode(Request):
    session_id: str
    mode_id: str


class Prompt(Request):
    session_id: str
    prompt: list[dict[str, Any]]


class Steering(Request):
    """`_session/steering`, the extension that agents advertise as `_meta.steering.supported`."""

    session_id: str
    prompt: list[dict[str, Any]]
    message_id: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
