"""The tools that the official MCP conformance scenarios ask for, on the mcp package.

Their names, and what they answer, are the runner's.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as t
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

Json = dict[str, Any]
Result = t.CallToolResult | t.InputRequiredResult

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
ANY: Json = {"type": "object"}
BUS = InMemorySubscriptionBus()


def text(words: str) -> t.TextContent:
    return t.TextContent(text=words)


def ok(*blocks: Any) -> t.CallToolResult:
    return t.CallToolResult(content=list(blocks))


def embedded(uri: str, words: str, kind: str = "text/plain") -> t.EmbeddedResource:
    return t.EmbeddedResource(resource=t.TextResourceContents(uri=uri, mime_type=kind, text=words))


# -- state that a client carries, and must not change -------------------------------------------

_KEY = secrets.token_bytes(16)


def seal(value: Json) -> str:
    body = base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
    return f"{body}.{hmac.new(_KEY, body.encode(), hashlib.sha256).hexdigest()}"


def unseal(state: str) -> Json:
    body, _, mark = state.rpartition(".")
    if not hmac.compare_digest(mark, hmac.new(_KEY, body.encode(), hashlib.sha256).hexdigest()):
        raise MCPError(t.INVALID_PARAMS, "requestState integrity check failed")
    return json.loads(base64.urlsafe_b64decode(body))


# -- questions ----------------------------------------------------------------------------------


def form(message: str, **properties: Json) -> t.ElicitRequest:
    schema: Json = {"type": "object", "properties": properties, "required": list(properties)}
    return t.ElicitRequest(
        params=t.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sample() -> t.CreateMessageRequest:
    message = t.SamplingMessage(role="user", content=text("What is the capital of France?"))
    return t.CreateMessageRequest(
        params=t.CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


def need(wanted: Any = None, state: str | None = None) -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests=wanted, request_state=state)


STRING: Json = {"type": "string"}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(words: list[str], prefix: str) -> list[Json]:
    return [{"const": f"{prefix}{n}", "title": title} for n, title in enumerate(words, 1)]


ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": _titled(["First Option", "Second Option", "Third Option"], "value"),
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": {"anyOf": _titled(["First Choice", "Second Choice", "Third Choice"], "value")},
    },
}


# -- tools --------------------------------------------------------------------------------------


class Call:
    """One call: its context, arguments, and what came with it when it is sent again."""

    def __init__(self, context: Any, params: t.CallToolRequestParams) -> None:
        self.context = context
        self.session = context.session
        self.arguments = params.arguments or {}
        self.inputs: Json = dict(params.input_responses or {})
        self.state = params.request_state

    @property
    def capabilities(self) -> t.ClientCapabilities:
        return self.session.client_capabilities or t.ClientCapabilities()

    async def elicited(self, properties: Json, required: list[str]) -> t.CallToolResult:
        schema = {"type": "object", "properties": properties, "required": required}
        message = self.arguments.get("message", "?")
        found = await self.session.elicit_form(
            message, schema, related_request_id=self.context.request_id
        )
        return ok(text(f"action={found.action}, content={json.dumps(found.content)}"))


Tool = Callable[[Call], Awaitable[Result]]
TOOLS: dict[str, Tool] = {}
SCHEMAS: dict[str, Json] = {}


def tool(*names: str, schema: Json | None = None) -> Callable[[Tool], Tool]:
    def add(handler: Tool) -> Tool:
        for name in names:
            TOOLS[name] = handler
            SCHEMAS[name] = ANY if schema is None else schema
        return handler

    return add


@tool("test_simple_text", "test_streaming_elicitation")
async def simple(call: Call) -> Result:
    return ok(text("This is a simple text response for testing."))


HEADER = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, **ANY}
tool("test_x_mcp_header", schema=HEADER)(simple)
tool(
    "json_schema_2020_12_tool",
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": STRING, "city": STRING},
            }
        },
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)(simple)


@tool("test_trigger_tool_change")
async def change_tools(call: Call) -> Result:
    await BUS.publish(ToolsListChanged())
    return ok(text("changed"))


@tool("test_trigger_prompt_change")
async def change_prompts(call: Call) -> Result:
    await BUS.publish(PromptsListChanged())
    return ok(text("changed"))


@tool("test_image_content")
async def image(call: Call) -> Result:
    return ok(t.ImageContent(data=PIXEL, mime_type="image/png"))


@tool("test_audio_content")
async def audio(call: Call) -> Result:
    return ok(t.AudioContent(data=SOUND, mime_type="audio/wav"))


@tool("test_embedded_resource")
async def resource(call: Call) -> Result:
    return ok(embedded("test://embedded-resource", "This is an embedded resource content."))


@tool("test_multiple_content_types")
async def mixed(call: Call) -> Result:
    return ok(
        text("Multiple content types test:"),
        t.ImageContent(data=PIXEL, mime_type="image/png"),
        embedded(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    )


@tool("test_tool_with_logging", "test_logging_tool")
async def logging(call: Call) -> Result:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await call.session.send_log_message(
            "info", message, related_request_id=call.context.request_id
        )
        await anyio.sleep(0.05)
    return ok(text("done"))


@tool("test_tool_with_progress")
async def progress(call: Call) -> Result:
    for value in (0, 50, 100):
        await call.session.report_progress(value, 100, f"Completed step {value} of 100")
        await anyio.sleep(0.05)
    return ok(text("progress done"))


@tool("test_error_handling")
async def fail(call: Call) -> Result:
    words = "This tool intentionally returns an error for testing"
    return t.CallToolResult(content=[text(words)], is_error=True)


@tool("test_sampling")
async def sampling(call: Call) -> Result:
    message = t.SamplingMessage(role="user", content=text(call.arguments.get("prompt", "")))
    found = await call.session.create_message(
        [message], max_tokens=100, related_request_id=call.context.request_id
    )
    return ok(text(f"LLM response: {found.content.text}"))


@tool("test_elicitation")
async def elicitation(call: Call) -> Result:
    properties = {"response": {"type": "string", "description": "User's response"}}
    return await call.elicited(properties, ["response"])


@tool("test_elicitation_sep1034_defaults")
async def elicitation_defaults(call: Call) -> Result:
    return await call.elicited(DEFAULTS, [])


@tool("test_elicitation_sep1330_enums")
async def elicitation_enums(call: Call) -> Result:
    return await call.elicited(ENUMS, [])


@tool("test_missing_capability")
async def missing_capability(call: Call) -> Result:
    if call.capabilities.sampling is None:
        wanted = {"requiredCapabilities": {"sampling": {}}}
        code = t.MISSING_REQUIRED_CLIENT_CAPABILITY
        raise MCPError(code, "MissingRequiredClientCapabilityError", wanted)
    return ok(text("Success"))


ROUNDS = "test_input_required_result_"


@tool(ROUNDS + "elicitation")
async def round_elicitation(call: Call) -> Result:
    found = call.inputs.get("user_name")
    if isinstance(found, t.ElicitResult) and (found.content or {}).get("name") is not None:
        return ok(text(f"Hello, {(found.content or {})['name']}!"))
    return need({"user_name": form("What is your name?", name=STRING)})


@tool(ROUNDS + "sampling")
async def round_sampling(call: Call) -> Result:
    if "sample_request" in call.inputs:
        return ok(text("Sampling result: ok"))
    return need({"sample_request": sample()})


@tool(ROUNDS + "list_roots")
async def round_roots(call: Call) -> Result:
    if "roots_request" in call.inputs:
        return ok(text("Found roots"))
    return need({"roots_request": t.ListRootsRequest()})


@tool(ROUNDS + "request_state")
async def round_state(call: Call) -> Result:
    if call.state and "confirm" in call.inputs and unseal(call.state):
        return ok(text("state-ok: requestState validated"))
    wanted = {"confirm": form("Please confirm", ok={"type": "boolean"})}
    return need(wanted, seal({"n": secrets.token_hex(4)}))


@tool(ROUNDS + "tampered_state")
async def round_tampered(call: Call) -> Result:
    if call.state:
        unseal(call.state)
        return ok(text("integrity-ok: state verified"))
    return need({"confirm": form("Please confirm", ok={"type": "boolean"})}, seal({"k": "t"}))


@tool(ROUNDS + "multiple_inputs")
async def round_many(call: Call) -> Result:
    wanted = {
        "user_name": form("name?", name=STRING),
        "greeting": sample(),
        "client_roots": t.ListRootsRequest(),
    }
    if call.state and set(wanted) <= set(call.inputs):
        unseal(call.state)
        return ok(text("all inputs"))
    return need(wanted, seal({"n": secrets.token_hex(4)}))


@tool(ROUNDS + "multi_round")
async def round_rounds(call: Call) -> Result:
    done = unseal(call.state).get("round") if call.state else None
    if done == 1 and "step1" in call.inputs:
        state = seal({"round": 2, "n": secrets.token_hex(4)})
        return need({"step2": form("Step 2: color?", color=STRING)}, state)
    if done == 2 and "step2" in call.inputs:
        return ok(text("Multi-round complete"))
    state = seal({"round": 1, "n": secrets.token_hex(4)})
    return need({"step1": form("Step 1: name?", name=STRING)}, state)


@tool(ROUNDS + "capabilities")
async def round_capabilities(call: Call) -> Result:
    if call.inputs:
        return ok(text("capabilities-ok"))
    wanted: Json = {}
    if call.capabilities.elicitation is not None:
        wanted["elicit_input"] = form("v?", value=STRING)
    if call.capabilities.sampling is not None:
        wanted["sample_input"] = sample()
    if not wanted:
        return ok(text("No supported capabilities declared"))
    return need(wanted, seal({"k": "c"}))


async def call_tool(context: Any, params: t.CallToolRequestParams) -> Result:
    handler = TOOLS.get(params.name)
    if handler is None:
        raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await handler(Call(context, params))


async def list_tools(context: Any, params: Any) -> t.ListToolsResult:
    tools = [
        t.Tool(name=name, description=name, input_schema=schema) for name, schema in SCHEMAS.items()
    ]
    return t.ListToolsResult(tools=tools, ttl_ms=1000, cache_scope="public")
