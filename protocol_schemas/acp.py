"""ACP version 1, as far as the daemon acts on it (agentclientprotocol schema v1).

Shapes only; unknown fields are dropped on decoding and relayed as raw bytes elsewhere. Every
field has a default where agents are known to leave it out or to send null.
"""

from typing import Any

import msgspec


class PromptCapabilities(msgspec.Struct, rename="camel"):
    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(msgspec.Struct, rename="camel"):
    http: bool = False
    sse: bool = False


class AgentCapabilities(msgspec.Struct, rename="camel"):
    """`sessionCapabilities`: a capability is there if its value is neither absent nor null."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities | None = None
    mcp_capabilities: McpCapabilities | None = None
    session_capabilities: dict[str, Any] | None = None

    def session(self, name: str) -> bool:
        """Whether `sessionCapabilities` has `name` (close, resume, fork, list, delete, ...)."""
        return (self.session_capabilities or {}).get(name) is not None


class InitializeResult(msgspec.Struct, rename="camel"):
    protocol_version: int
    agent_capabilities: AgentCapabilities | None = None
    agent_info: dict[str, Any] | None = None
    auth_methods: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class PermissionOption(msgspec.Struct, rename="camel"):
    """`kind`: allow_once, allow_always, reject_once, reject_always, or one we do not know.

    `option_id` is a string by the schema; what else an agent may send is given back as it is.
    """

    option_id: Any
    kind: Any = ""


class PermissionParams(msgspec.Struct, rename="camel"):
    """`session/request_permission`."""

    session_id: str
    tool_call: dict[str, Any]
    options: list[PermissionOption]


class PromptResult(msgspec.Struct, rename="camel"):
    """The answer to `session/prompt`. A stop reason we do not know is kept as it is."""

    stop_reason: str | None = None
    usage: dict[str, Any] | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class TextBlock(msgspec.Struct):
    """What the reply needs of a content block; `text` is None in any other kind of block."""

    type: str = ""
    text: str | None = None


class Update(msgspec.Struct, rename="camel"):
    """The part of a `session/update` that a turn's result depends on.

    `content`: a block (chunks), a list (tool calls) or whatever an unknown update has.
    """

    kind: str = msgspec.field(name="sessionUpdate")
    content: TextBlock | list[msgspec.Raw] | str | float | bool | None = None
    message_id: str | None = None
    tool_call_id: str | None = None
    status: str | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class UpdateParams(msgspec.Struct, rename="camel"):
    session_id: str
    update: Update
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")
