"""The model proxy's own words: its options and limits, what it reads of a chat request, its events.

Rule: of a request only what a rule or the bookkeeping acts on is named, and kept raw; what is
absent is empty. Options come with a session's config (`model`) or from the command line.
"""

from typing import Annotated, Literal

import msgspec

Raw = msgspec.Raw
ABSENT = Raw(b"")
Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ChatMessage(msgspec.Struct, gc=False):
    """One message of a chat completions request: the raw JSON of the fields that rules look at."""

    role: Raw = ABSENT
    content: Raw = ABSENT
    tool_calls: Raw = ABSENT
    function_call: Raw = ABSENT
    refusal: Raw = ABSENT
    audio: Raw = ABSENT


class ChatRequest(msgspec.Struct, gc=False):
    """A chat completions request: its messages, and what tells its purpose."""

    messages: list[ChatMessage] = []
    model: Raw = ABSENT
    stream: Raw = ABSENT
    tools: Raw = ABSENT
    functions: Raw = ABSENT
    max_tokens: Raw = ABSENT
    max_completion_tokens: Raw = ABSENT
    response_format: Raw = ABSENT


class ModelLimits(msgspec.Struct, forbid_unknown_fields=True):
    """When a session's model calls end. None: no limit.

    `max_turns`: generations, not counting side calls. `max_turn_tokens`: output tokens of one
    response; the request's own cap is lowered to it. `max_total_tokens`: input and output of all
    calls. `max_seconds`: wall clock since the session's first call. All are soft by one call: the
    call that reaches one is finished, the next is refused.
    """

    max_turns: Count | None = None
    max_turn_tokens: Count | None = None
    max_total_tokens: Count | None = None
    max_seconds: Seconds | None = None


class ModelOptions(msgspec.Struct, forbid_unknown_fields=True):
    """How one upstream's traffic is treated (docs/model-proxy.md has the providers' reasons).

    `upstream` replaces the URL the agent is configured with. `mend_content`: null or absent
    assistant content without tool calls becomes "". `tool_call_content`: what becomes of it beside
    tool calls. `drop_empty_tool_calls`: `tool_calls: []` is left out. `drop_nulls`: null
    `refusal`, `function_call` and `audio` are left out. `drop_unoffered_calls`: calls to tools
    that the request did not offer are taken out of responses. `answer_models`: where the upstream
    has no list of models, the proxy answers with one of `models` and what requests have named.
    `idle_timeout`: seconds without a byte from the upstream.

    `headers` and `api_type` go to an agent that is told its model by `providers/set`: the headers
    of its requests, and the API it shall speak (the agent's own choice if None).
    """

    upstream: str | None = None
    mend_content: bool = True
    tool_call_content: Literal["keep", "empty", "null"] = "keep"
    drop_empty_tool_calls: bool = False
    drop_nulls: bool = False
    drop_unoffered_calls: bool = False
    answer_models: bool = True
    models: list[str] = []
    headers: dict[str, str] = {}
    api_type: str | None = None
    idle_timeout: Seconds | None = None
    limits: ModelLimits = msgspec.field(default_factory=ModelLimits)


class Usage(msgspec.Struct, omit_defaults=True):
    """Tokens of one exchange as the upstream reports them; `input` includes those read from and
    written to a cache, `output` those spent on reasoning.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Change(msgspec.Struct):
    """What a rule changed: where (`messages[3].content`), from what to what; None is absent."""

    rule: str
    path: str
    before: str | None
    after: str | None


class ModelEvent(msgspec.Struct, omit_defaults=True):
    """One exchange between an agent and a model server, told when it has ended.

    `purpose`: `turn` (a generation), `side` (title generation, probes), `count`, `models` or
    `other`; `side`: which side call it was (bridge.rules.side_calls), `other` where that is not
    known. `again`: the agent's own question for more, after an answer without text. Times are
    seconds: `at` on the wall clock, the others since then. `outcome`: `complete`, `cut` (the
    upstream broke off), `gone` (the agent left), `refused` (answered by the proxy), `failed` (the
    upstream could not be reached or understood). `error`: what went wrong, in the proxy's words or
    (short, credentials masked) the upstream's. `stand_in`: the proxy answered in the place of an
    upstream that said `status`.
    """

    event: str
    session: str
    exchange: int
    method: str
    path: str
    dialect: str
    purpose: str
    upstream: str
    at: float
    outcome: str
    status: int | None = None
    side: str | None = None
    again: bool = False
    stand_in: bool = False
    model: str | None = None
    stream: bool = False
    request_bytes: int = 0
    response_bytes: int = 0
    head: float | None = None
    first: float | None = None
    end: float | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    request_id: str | None = None
    limit: str | None = None
    error: str | None = None
    changes: list[Change] = []


class ModelError(msgspec.Struct):
    """A generation of a turn that failed. `status`: what the agent was answered with, None where it
    was nothing; `error`: the upstream's words, or the proxy's. `purpose`: `turn`, or `side` with
    the kind of `side` call. `recovered`: a later generation of the turn succeeded.
    """

    exchange: int
    status: int | None
    error: str
    purpose: str
    side: str | None = None
    recovered: bool = False


class ModelTurn(msgspec.Struct):
    """What a turn's model calls came to. `last`: how its last generation ended, None without one or
    where a limit stopped it.
    """

    errors: list[ModelError] = []
    last: Literal["answered", "failed"] | None = None
