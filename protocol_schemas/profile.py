"""Agent profiles: what one says of an agent, as data (docs/agents.md is the reference).

Rule: an unknown field is an error, so that a misspelt one is not silently without effect. Strings
may hold `${...}` placeholders, which `bridge.agent.placeholders` knows and fills.
"""

from typing import Annotated, Any, Literal

import msgspec

Wire = Literal["chat", "responses", "anthropic", "gemini"]
"""How an agent speaks to its model: OpenAI's chat completions or responses, Anthropic's messages,
Gemini's generateContent."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._+-]+$")]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=60)]
Template = str | dict[str, Any] | list[Any]
"""Text, or a table that becomes JSON; placeholders stand in its strings."""


class Install(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What npm installs: `packages` with their pinned versions; the first one's is the agent's.

    `scripts`: their install scripts must run. `node`: the oldest node they run on, such as "22.19";
    empty where none is needed.
    """

    packages: Annotated[dict[str, Version], msgspec.Meta(min_length=1)]
    scripts: bool = False
    node: Annotated[str, msgspec.Meta(pattern=r"^([0-9]+(\.[0-9]+)*)?$")] = ""


class Launch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it is started. `environment`: what is added to the inherited one; a table becomes JSON.

    `task`: it is no ACP agent but a program that is run once for each prompt, with the prompt's
    text for `${prompt}` in its `command`; what it prints is the reply. `unset`: inherited variables
    that would mislead it.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    task: bool = False
    environment: dict[str, Template] = {}
    unset: list[str] = []


class WireUse(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A wire it can speak. `v1`: the base URL that it wants ends with `/v1`. `values`: its own
    words for things on this wire, for `${wire.NAME}`."""

    v1: bool = True
    values: dict[str, str] = {}


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A file in the session's state directory: `text`, or a table that becomes JSON or TOML.

    An `executable` one takes what it needs from the environment: it has no placeholders.
    """

    path: Annotated[str, msgspec.Meta(pattern=r"^[^/].*$")]
    text: str | None = None
    json: dict[str, Any] | None = None
    toml: dict[str, Any] | None = None
    executable: bool = False


class Mcp(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How MCP servers reach it: `acp` (session/new), `file` for an agent that ignores those, or
    `none`. `server` is what stands for one of them where a template says `${mcp.servers}`."""

    via: Literal["acp", "file", "none"] = "acp"
    server: dict[str, Any] = {}


class Tools(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How tools of its own are switched off, where a template says `${disabled_rules}`: by a list
    with `rule` for each, `${tool}` in it; or, if `rule` is no table, by a table of it by tool."""

    rule: dict[str, Any] | bool = {}


class Session(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a new session is given: `meta`, the request's `_meta`; `mode`, set right after it."""

    meta: dict[str, Any] = {}
    mode: str | None = None


class Quirks(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What it is peculiar about.

    `start_timeout`: seconds that it may need to start, for hosts who don't say (default 60).
    `settle`: seconds after a turn's response in which updates that belong to it still come.
    `allow_empty_tool_reply`: what hosts get who don't say. `ignores_eof`: the end of its stdin does
    not end it. `exits`: exit codes that say it refused to work, and what each says.
    """

    start_timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    settle: Seconds = 0.0
    allow_empty_tool_reply: bool = False
    ignores_eof: bool = False
    exits: dict[str, str] = {}


class SideCall(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A model call it makes beside the turns' own, known by a field of the request.

    `field`: a dotted path into its JSON body, such as `model` or `text.format.type`; an index is a
    number. It is one if the value `equals`, or its text `matches` (a regular expression, anywhere).
    """

    wire: Wire
    field: str
    purpose: str
    equals: str | int | bool | None = None
    matches: str | None = None


class Profile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One agent. `docs`: what a reader should know of it, Markdown.

    `wires`: in the order of preference; the first is taken where the host does not say.
    """

    name: Name
    title: str
    docs: str = ""
    install: Install | None = None
    launch: Launch
    wires: Annotated[dict[Wire, WireUse], msgspec.Meta(min_length=1)]
    files: list[File] = []
    mcp: Mcp = msgspec.field(default_factory=Mcp)
    tools: Tools = msgspec.field(default_factory=Tools)
    session: Session = msgspec.field(default_factory=Session)
    quirks: Quirks = msgspec.field(default_factory=Quirks)
    side_calls: list[SideCall] = []
