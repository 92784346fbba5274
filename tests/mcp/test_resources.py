"""Resources, prompts and completions: of one server as they are, of several as one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.mcp.resources import _matches
from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import QUICK
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_catalogue import entry, pages
from tests.mcp.web import Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}


def says(**results: Json) -> dict[str, list[Act]]:
    """Results by method (`_` for `/`), given as often as they are asked for."""

    def act(result: Json) -> Act:
        async def run(server: Fake, peer: Peer, seen: Seen) -> None:
            await peer.send(fake.reply(200, fake.answer(seen.id, result)))

        return run

    return {name.replace("_", "/"): [act(result)] * 20 for name, result in results.items()}


@asynccontextmanager
async def endpoints(**servers: Fake) -> AsyncGenerator[tuple[Web, dict[str, Web]]]:
    """Clients of the endpoint of all, and of each server's own."""
    async with McpProxy(lambda event: None) as proxy:
        for server in servers.values():
            server.capabilities = CAPABILITIES
        entries = [entry(name, server) for name, server in servers.items()]
        given = proxy.mount("a", entries, dict.fromkeys(servers, QUICK))
        each = {found["name"]: Web(found["url"]) for found in given}
        every = Web(given[0]["url"].rpartition("/")[0])
        for web in (every, *each.values()):
            await web.open()
        yield every, each


def resource(uri: str, **more: Any) -> Json:
    return {"uri": uri, "name": uri, **more}


async def test_one_servers_lists_pass_whole_and_unchanged() -> None:
    server = Fake(eras=("legacy",))
    async with server.running(), endpoints(s=server) as (_, each):
        server.acts["resources/list"] = pages(
            {"resources": [resource("a:1", x=1)], "nextCursor": "n"},
            {"resources": [resource("a:2")], "_meta": {"k": 1}},
        )
        got = await each["s"].call("resources/list")
    assert got.result == {"resources": [resource("a:1", x=1), resource("a:2")], "_meta": {"k": 1}}


@pytest.mark.parametrize(
    "method, params",
    [
        ("resources/read", {"uri": "a:1"}),
        ("prompts/get", {"name": "p", "arguments": {"x": "1"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}}),
        ("acme/method", {"any": [1.5]}),
    ],
)
async def test_other_requests_reach_the_one_server_and_its_answer_comes_back(
    method: str, params: Json
) -> None:
    server = Fake(eras=("legacy",))
    async with server.running(), endpoints(s=server) as (_, each):
        server.acts.update(says(**{method.replace("/", "_"): {"odd": [None, 1.0]}}))
        got = await each["s"].call(method, params)
        # A read that fails is made again.
        if method != "acme/method":
            server.acts[method].insert(0, fake.closes)
            assert (await each["s"].call(method, params)).result == got.result
    assert got.result == {"odd": [None, 1.0]}
    sent = dict(server.steps(method)[0].message["params"])
    sent.pop("_meta", None)
    assert sent == params


async def test_a_read_that_keeps_failing_is_an_error_that_says_why() -> None:
    server = Fake(eras=("legacy",))
    async with server.running(), endpoints(s=server) as (_, each):
        server.acts["resources/read"] = [fake.says(500, "boom")] * 6
        got = await each["s"].call("resources/read", {"uri": "a:1"})
    assert got.error["code"] == -32603
    assert "HTTP 500: boom" in got.error["message"]
    assert got.error["data"]["dev.acp-mcp-bridge/failure"]["attempts"] == 6


async def test_an_error_of_the_servers_is_passed_on() -> None:
    server = Fake(eras=("legacy",))
    async with server.running(), endpoints(s=server) as (_, each):
        server.acts["resources/read"] = [fake.refuses(-32002)]
        got = await each["s"].call("resources/read", {"uri": "a:1"})
    assert got.error["code"] == -32002
    assert len(server.steps("resources/read")) == 1


async def test_of_several_servers_prompts_are_prefixed_and_resources_are_not() -> None:
    one, two = Fake(eras=("legacy",)), Fake(eras=("legacy",))
    one.acts.update(
        says(
            resources_list={"resources": [resource("a:1")]},
            prompts_list={"prompts": [{"name": "p"}]},
            resources_templates_list={"resourceTemplates": [{"uriTemplate": "a:{x}"}]},
            prompts_get={"messages": []},
            resources_read={"contents": [{"uri": "a:1", "text": "one"}]},
        )
    )
    two.acts.update(
        says(
            resources_list={"resources": [resource("b:1")]},
            prompts_list={"prompts": [{"name": "p", "title": "t"}]},
            resources_templates_list={"resourceTemplates": []},
            resources_read={"contents": [{"uri": "b:1", "text": "two"}]},
            completion_complete={"completion": {"values": ["v"]}},
        )
    )
    async with one.running(), two.running(), endpoints(one=one, two=two) as (every, _):
        listed = (await every.call("resources/list")).result["resources"]
        assert [found["uri"] for found in listed] == ["a:1", "b:1"]
        prompts = (await every.call("prompts/list")).result["prompts"]
        assert prompts == [{"name": "one_p"}, {"name": "two_p", "title": "t"}]
        templates = (await every.call("resources/templates/list")).result["resourceTemplates"]
        assert templates == [{"uriTemplate": "a:{x}"}]
        for uri, text in (("a:1", "one"), ("b:1", "two"), ("a:anything", "one")):
            got = await every.call("resources/read", {"uri": uri})
            assert got.result["contents"][0]["text"] == text
        assert (await every.call("prompts/get", {"name": "one_p"})).result == {"messages": []}
        ref = {"type": "ref/prompt", "name": "two_p"}
        got = await every.call("completion/complete", {"ref": ref, "argument": {}})
        assert got.result == {"completion": {"values": ["v"]}}
        assert (await every.call("prompts/get", {"name": "p"})).error["code"] == -32602
        assert (await every.call("acme/method", {})).error["code"] == -32601
    assert one.steps("prompts/get")[0].message["params"]["name"] == "p"
    assert two.steps("completion/complete")[0].message["params"]["ref"]["name"] == "p"


async def test_a_resource_of_two_servers_is_an_error_that_names_both() -> None:
    lists = says(resources_list={"resources": [resource("a:1")]})
    one, two = Fake(eras=("legacy",)), Fake(eras=("legacy",))
    one.acts.update(lists)
    two.acts.update(says(resources_list={"resources": [resource("a:1")]}))
    async with one.running(), two.running(), endpoints(one=one, two=two) as (every, each):
        got = await every.call("resources/read", {"uri": "a:1"})
        assert "'one' and 'two'" in got.error["message"]
        one.acts.update(says(resources_read={"contents": []}))
        assert (await each["one"].call("resources/read", {"uri": "a:1"})).result == {"contents": []}


async def test_a_server_that_fails_does_not_keep_the_others_lists() -> None:
    one, two = Fake(eras=("legacy",)), Fake(eras=("legacy",))
    one.acts.update(says(resources_list={"resources": [resource("a:1")]}))
    two.acts["resources/list"] = [fake.says(401)]
    async with one.running(), two.running(), endpoints(one=one, two=two) as (every, _):
        got = await every.call("resources/list")
    assert [found["uri"] for found in got.result["resources"]] == ["a:1"]


@pytest.mark.parametrize(
    "method, params",
    [("resources/read", {}), ("resources/read", {"uri": 3}), ("prompts/get", {}),
     ("tools/call", {"name": None}), ("completion/complete", {}), ("tools/call", [1])],
)  # fmt: skip
async def test_parameters_that_name_nothing_are_refused(method: str, params: Any) -> None:
    one, two = Fake(eras=("legacy",)), Fake(eras=("legacy",))
    async with one.running(), two.running(), endpoints(one=one, two=two) as (every, _):
        got = await every.call(method, params)
    assert got.error["code"] == -32602


@pytest.mark.parametrize(
    "template, uri, fits",
    [
        ("a:{x}", "a:1", True),
        ("a:{x}/b", "a:1/2/b", True),
        ("a:{x}/b", "a:1", False),
        ("a:b", "a:b", True),
        ("a:b", "a:bc", False),
        ("a.{x}", "ab1", False),
        ("{+x}", "anything", True),
    ],
)
def test_a_template_stands_for_its_uris(template: str, uri: str, fits: bool) -> None:
    assert _matches(template, uri) is fits
