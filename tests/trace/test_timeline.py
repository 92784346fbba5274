"""What events mean, and which belong together."""

from tests.trace.traces import Script


def test_a_response_has_its_request_s_method_and_the_time_between() -> None:
    request, response = Script().call(7, "session/new", {"cwd": "/"}).answer(7, {}).entries()
    assert (request.role, request.method, request.id) == ("request", "session/new", "7")
    assert (response.role, response.method) == ("response", "session/new")
    assert response.partner is request
    assert request.partner is response
    assert response.latency == request.latency
    assert round(response.latency or 0, 6) == 0.01


def test_ids_of_the_two_sides_are_apart() -> None:
    script = Script().call(1, "session/prompt", {}).ask(1, "fs/read_text_file", {"path": "/x"})
    prompt, read, content, done = script.reply(1, {"content": ""}).answer(1, {}).entries()
    assert content.partner is read
    assert done.partner is prompt


def test_ids_of_two_agents_are_apart() -> None:
    script = Script()
    for n in (1, 2):
        script.add("acp", "out", n=n, msg={"jsonrpc": "2.0", "id": 1, "method": f"m{n}"})
    for n in (2, 1):
        script.add("acp", "in", n=n, msg={"jsonrpc": "2.0", "id": 1, "result": {}})
    assert [entry.method for entry in script.entries()] == ["m1", "m2", "m2", "m1"]


def test_an_id_is_the_same_however_it_is_spelt() -> None:
    for asked, answered in (('"é"', '"\\u00e9"'), ('"\\u2028"', '"\u2028"'), ('"\\/"', '"/"')):
        script = Script().to_agent(f'{{"jsonrpc":"2.0","id":{asked},"method":"m"}}')
        script.from_agent(f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}')
        request, response = script.entries()
        assert response.partner is request
        assert request.id == response.id


def test_an_id_keeps_its_type() -> None:
    script = Script().call(1, "m").call("1", "n").answer("1", {}).answer(1, {})
    assert [entry.method for entry in script.entries()] == ["m", "n", "n", "m"]


def test_an_error_is_a_failure_and_its_words_are_kept() -> None:
    entries = Script().call(1, "m").answer(1, error={"code": -32601, "message": "no"}).entries()
    assert [entry.failed for entry in entries] == [False, True]
    assert entries[1].fields == {"code": -32601, "message": "no", "data": None}


def test_a_chunk_has_its_text() -> None:
    [chunk] = Script().say("hello").entries()
    assert (chunk.role, chunk.update, chunk.text, chunk.session_id) == (
        "notification", "agent_message_chunk", "hello", "s",
    )  # fmt: skip


def test_an_update_of_an_odd_kind_is_one_of_no_known_kind() -> None:
    params = {"sessionId": "s", "update": {"sessionUpdate": {}}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    [entry] = Script().from_agent(message).entries()
    assert (entry.update, entry.text) == ("?", None)


def test_noise_is_kept_and_a_blank_line_is_no_failure() -> None:
    noise, blank = Script().from_agent("db: ready").from_agent(" ").entries()
    assert (noise.role, noise.failed, noise.text) == ("noise", True, "db: ready")
    assert (blank.role, blank.failed) == ("noise", False)


def test_a_host_s_packets_are_operations_and_events() -> None:
    script = Script()
    script.add("host", "in", msg={"id": "a", "operation": "open"})
    script.add("host", "out", msg={"event": "update", "update": {"sessionUpdate": "plan"}})
    script.add("host", "out", msg={"id": "a", "ok": False, "error": "x"})
    request, event, response = script.entries()
    assert (request.role, request.method) == ("request", "open")
    assert (event.role, event.method, event.update) == ("notification", "event/update", "plan")
    assert (response.method, response.failed, response.partner) == ("open", True, request)


def test_requests_of_a_host_without_ids_are_paired_by_order() -> None:
    script = Script().add("host", "in", msg={"operation": "prompt"})
    script.add("host", "out", msg={"ok": True, "reply": ""})
    assert script.entries()[1].method == "prompt"


def test_a_model_exchange_is_a_request_and_its_end() -> None:
    target = "/ThisIsTheUnguessablePart/v1/chat/completions?x=1"
    asked = {"method": "POST", "target": target}
    script = Script().add("model", "in", n=3, kind="request", data=asked)
    script.add("model", "in", n=3, kind="response", data={"status": 200})
    script.add("model", n=3, kind="end", data={"outcome": "complete", "status": 200})
    request, _, end = script.entries()
    assert request.method == "POST /v1/chat/completions"
    assert end.partner is request
    assert not end.failed


def test_failed_attempts_exchanges_and_exits_are_failures() -> None:
    script = Script().add("mcp", kind="attempt", data={"outcome": "refused"})
    script.add("mcp", kind="attempt", data={"outcome": "answer"})
    script.add("model", n=1, kind="end", data={"outcome": "complete", "status": 500})
    script.add("model", n=1, kind="end", data={"outcome": "cut", "status": 200})
    script.add("process", kind="exit", data={"exit_code": 1})
    script.add("process", kind="exit", data={"exit_code": 0, "signal": None})
    failed = [entry.failed for entry in script.entries()]
    assert failed == [True, False, True, True, True, False]
