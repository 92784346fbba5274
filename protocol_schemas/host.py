"""What a host may say (HOST_PROTOCOL §2-§4): the requests' fields that the daemon acts on.

One `Config` serves the three generations: A says `messages`, B and C say `user_contents`.
Unknown fields are ignored, so that an older daemon serves a newer host.
"""

from typing import Annotated, Any, Literal

import msgspec

Contents = list[str | list[dict[str, Any]] | None]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
"""NaN is none either."""


class ToolInterception(msgspec.Struct):
    """The tool gate: POST {"tool_call_id", "arguments"} to `url` with `Bearer secret`."""

    url: str
    secret: str = ""


class ModelEndpoint(msgspec.Struct):
    """What an agent of a profile is told of its model: in `config.model`, beside ModelOptions.

    `base_url`: as clients of that wire want it, with `/v1` for OpenAI's; `wire`: see
    protocol_schemas.profile. What is not given comes from the daemon's environment.
    """

    base_url: str | None = None
    name: str | None = None
    api_key: str | None = None
    wire: Literal["chat", "responses", "anthropic", "gemini"] | None = None


class AgentOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What a host may change of an agent's profile. `version`: of its first package; `packages`: of
    any. `state`: a directory for the agent's own state, kept, so that another process can load its
    sessions; absent, it is a temporary one.
    """

    version: str | None = None
    packages: dict[str, str] = {}
    disabled_tools: list[str] = []
    state: str | None = None


class Config(msgspec.Struct):
    """How a session's agent is started and its turns are run; times in seconds."""

    command: list[str] = []
    messages: list[dict[str, Any]] | None = None
    user_contents: Contents | None = None
    mcp_urls: dict[str, str] | None = None
    mcp_headers: dict[str, dict[str, str]] | None = None
    system_prompt: str | None = None
    session_path: str | None = None
    session_meta: dict[str, Any] | None = None
    client_capabilities: dict[str, Any] | None = None
    tool_interception: ToolInterception | None = None
    allow_empty_tool_reply: bool | None = None
    client_services: list[Literal["fs", "terminal", "elicitation"]] = []
    cwd: str | None = None
    env: dict[str, str] = {}
    secrets: list[str] = []
    mcp_servers: list[dict[str, Any]] | None = None
    additional_directories: list[str] | None = None
    protocol_version: int = 1
    agent: str | None = None
    agent_options: AgentOptions = msgspec.field(default_factory=AgentOptions)
    permission: Literal["allow", "deny", "ask"] | None = None
    model: dict[str, Any] | None = None
    mcp: dict[str, dict[str, Any]] | None = None
    mcp_proxy: Literal["auto", "off"] | None = None
    model_proxy: Literal["auto", "off"] | None = None
    start_timeout: Seconds | None = None
    turn_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    close_grace: Seconds | None = None


class Hello(msgspec.Struct):
    protocol: int = 1
    client: dict[str, Any] = {}
    events: list[str] = []


class Open(msgspec.Struct):
    config: Config


class Prompt(msgspec.Struct):
    config: Config = msgspec.field(default_factory=Config)


class Steer(msgspec.Struct):
    message: str | list[dict[str, Any]]
    message_id: str | None = None


class Send(msgspec.Struct):
    message: str | list[dict[str, Any]]
    mode: Literal["steer", "queue"] = "queue"
    message_id: str | None = None


class Restore(msgspec.Struct):
    """`resume` and `load`."""

    session_id: str
    config: Config = msgspec.field(default_factory=Config)


class Fork(msgspec.Struct):
    new_session: str
    cwd: str | None = None


class SetMode(msgspec.Struct):
    mode_id: str


class SetConfigOption(msgspec.Struct):
    config_id: str
    value: str | bool


class ListSessions(msgspec.Struct):
    cwd: str | None = None
    cursor: str | None = None


class DeleteSession(msgspec.Struct):
    session_id: str


class SelectedOption(msgspec.Struct):
    """`option_id` as the agent offered it."""

    option_id: Any


class PermissionAnswer(msgspec.Struct):
    request_id: str
    outcome: SelectedOption | Literal["allow", "deny", "cancel"]


class ElicitationAnswer(msgspec.Struct):
    request_id: str
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Authenticate(msgspec.Struct):
    method_id: str


class CancelToolCall(msgspec.Struct):
    tool_call_id: str


class CancelTerminal(msgspec.Struct):
    terminal_id: str


class CallTool(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None
    config: Config = msgspec.field(default_factory=Config)


class ListTools(msgspec.Struct):
    config: Config = msgspec.field(default_factory=Config)
