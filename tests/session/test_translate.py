"""What hosts call a prompt, as content blocks: everything in order, or refused by name."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.session import translate
from protocol_schemas.acp import AgentCapabilities, PromptCapabilities
from protocol_schemas.host import Config

PNG = "data:image/png;base64,iVBORw0KGgo="
NOTHING = AgentCapabilities()
ALL = AgentCapabilities(
    prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True)
)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(url: object = PNG) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def blocks(*, first: bool = True, can: AgentCapabilities = ALL, **config: Any) -> list[Any]:
    return translate.prompt_blocks(Config(**config), can, first=first)


def words(*, first: bool = True, **config: Any) -> str:
    return "".join(block["text"] for block in blocks(first=first, **config))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


# user_contents (generations B and C)


def test_contents_are_joined_by_a_blank_line() -> None:
    assert blocks(user_contents=["a", [text("b"), image()], None]) == [
        text("a"),
        text("\n\n"),
        text("b"),
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        text("\n\n"),
        text(""),
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "u", "text": "t"}},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "_meta": {"x": 1}},
        {"type": "image", "data": "AAAA", "mimeType": "image/gif"},
        {"type": "text", "text": "t", "annotations": {"priority": 1}},
    ],
)
def test_a_block_of_acp_s_own_goes_out_as_it_is(block: dict[str, Any]) -> None:
    assert blocks(user_contents=[[block]]) == [block]


@pytest.mark.parametrize("contents", [None, []])
def test_nothing_at_all_is_refused(contents: Any) -> None:
    with pytest.raises(BridgeError, match="user_contents") as caught:
        blocks(user_contents=contents, system_prompt="be nice")
    assert caught.value.code == "invalid_request"


def test_the_system_prompt_is_a_block_of_its_own() -> None:
    assert translate.system_blocks("be nice") == [text("(system)\nbe nice\n\n[user]\n")]
    assert translate.system_blocks("") == translate.system_blocks(None) == []


# messages (generation A)


def test_a_single_user_message_is_sent_as_its_own_parts() -> None:
    assert blocks(messages=[user("hi")]) == [text("hi")]
    assert blocks(messages=[user([text("a"), image()])])[0] == text("a")
    assert blocks(messages=[user("hi")], system_prompt="") == [text("hi")]


def test_a_system_prompt_makes_it_a_transcript() -> None:
    said = words(messages=[user("hi")], system_prompt="be nice")
    assert said == "[system]\nbe nice\n\n[user]\nhi"


def test_a_transcript_names_the_roles() -> None:
    messages = [user("a"), {"role": "assistant", "content": "b"}, user("c")]
    assert blocks(messages=messages) == [
        text("[user]\n"),
        text("a"),
        text("\n\n[assistant]\n"),
        text("b"),
        text("\n\n[user]\n"),
        text("c"),
    ]


def test_other_truthy_fields_of_a_message_follow_it_as_json() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "name": ""},
        {"role": "tool", "content": "out", "tool_call_id": "1"},
    ]
    said = blocks(messages=messages)
    assert said[1] == text("")
    assert said[2]["text"].startswith("\n{")
    assert json.loads(said[2]["text"]) == {"tool_calls": [call]}
    assert json.loads(said[-1]["text"]) == {"tool_call_id": "1"}


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_a_single_message_of_another_role_is_a_transcript(role: str) -> None:
    assert words(messages=[{"role": role, "content": "x"}]) == f"[{role}]\nx"


def test_in_a_session_that_ran_only_what_follows_the_last_answer_is_sent() -> None:
    messages = [user("a"), {"role": "assistant", "content": "b"}, user("c")]
    assert blocks(messages=messages, system_prompt="be nice", first=False) == [text("c")]
    more = [*messages, user("d")]
    assert words(messages=more, first=False) == "[user]\nc\n\n[user]\nd"
    assert words(messages=[user("a"), user("b")], first=False) == "[user]\na\n\n[user]\nb"


def test_nothing_new_in_a_session_that_ran_is_refused() -> None:
    messages = [user("a"), {"role": "assistant", "content": "b"}]
    for given_ in (messages, []):
        with pytest.raises(BridgeError, match=r"config\.messages"):
            blocks(messages=given_, first=False)


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=5)), min_size=1
    ),
    st.text(max_size=3),
    st.booleans(),
)
def test_every_message_that_is_due_is_in_the_prompt_in_order(
    chat: list[tuple[str, str]], system: str, first: bool
) -> None:
    messages = [{"role": role, "content": content} for role, content in chat]
    due = chat
    if not first:
        after = [i + 1 for i, (role, _) in enumerate(chat) if role == "assistant"]
        due = chat[after[-1] if after else 0 :]
    elif system:
        due = [("system", system), *chat]
    if not due:
        return
    said = words(messages=messages, system_prompt=system, first=first)
    if len(due) == 1 and due[0][0] == "user":
        assert said == due[0][1]
    else:
        assert said == "\n\n".join(f"[{role}]\n{content}" for role, content in due)


# parts


@pytest.mark.parametrize(
    ("url", "media_type", "data"),
    [
        (PNG, "image/png", "iVBORw0KGgo="),
        ("data:image/jpeg;base64,AA==", "image/jpeg", "AA=="),
        ("data:image/svg+xml;charset=utf-8;base64,AA", "image/svg+xml", "AA"),
        ("data:image/png;BASE64,AA", "image/png", "AA"),
    ],
)
def test_an_image_url_becomes_an_image(url: str, media_type: str, data: str) -> None:
    (block,) = blocks(user_contents=[[image(url)]])
    assert block == {"type": "image", "data": data, "mimeType": media_type}


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "data:text/plain;base64,AA",
        "data:image/png,AA",
        "data:image/png;base64",
        "data:image/png;base64,",
        "data:image/png;base64,@@@",
        "data:image/png;base64,AA%3D%3D",
        "data:image/png;base64,é",
        "",
        None,
        7,
        {},
    ],
)
def test_an_image_url_of_another_kind_is_refused_with_its_place(url: object) -> None:
    with pytest.raises(BridgeError, match=r"user_contents\[1\]\[0\]\.image_url\.url") as caught:
        blocks(user_contents=["a", [image(url)]])
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("words", "type"),
        (None, "type"),
        ({}, "type"),
        ({"type": 3}, "type"),
        ({"type": "text"}, "text"),
        ({"type": "text", "text": None}, "text"),
        ({"type": "video", "data": ""}, "video"),
        ({"type": "input_text", "text": "x"}, "input_text"),
        ({"type": "image_url"}, "image_url"),
        ({"type": "image_url", "image_url": PNG}, "image_url"),
    ],
)
def test_a_part_that_is_not_understood_is_named(part: Any, why: str) -> None:
    for make in (
        lambda: blocks(messages=[user("fine"), user(["x" if part == "words" else part])]),
        lambda: translate.message_blocks([part]),
    ):
        with pytest.raises(BridgeError, match=why) as caught:
            make()
        assert caught.value.code == "invalid_request"


@pytest.mark.parametrize("system", ["", "be nice"])
def test_the_place_of_a_bad_part_is_the_host_s_own(system: str) -> None:
    messages = [user("a"), {"role": "assistant", "content": "b"}, user([{"type": "video"}])]
    for first in (True, False):
        with pytest.raises(BridgeError, match=r"config\.messages\[2\]\.content\[0\]"):
            blocks(messages=messages, system_prompt=system, first=first)


@pytest.mark.parametrize("content", [7, {}, True])
def test_content_that_is_neither_text_nor_parts_is_refused(content: Any) -> None:
    with pytest.raises(BridgeError, match="neither text nor a list"):
        blocks(messages=[user(content)])


NEEDS = [
    (image(), "image"),
    ({"type": "image", "data": "", "mimeType": "image/png"}, "image"),
    ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "audio"),
    ({"type": "resource", "resource": {}}, "embeddedContext"),
]


@pytest.mark.parametrize(("part", "capability"), NEEDS)
def test_what_the_agent_does_not_take_is_refused_by_name(
    part: dict[str, Any], capability: str
) -> None:
    for can in (NOTHING, AgentCapabilities(prompt_capabilities=PromptCapabilities())):
        with pytest.raises(BridgeError, match=f"promptCapabilities.{capability}") as caught:
            blocks(user_contents=["look", [part]], can=can)
        assert caught.value.code == "unsupported"
        assert "nothing was sent" in caught.value.message
    kind = "embedded_context" if capability == "embeddedContext" else capability
    able = AgentCapabilities(prompt_capabilities=PromptCapabilities(**{kind: True}))
    assert len(blocks(user_contents=[[part]], can=able)) == 1


def test_a_resource_link_needs_no_capability() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    assert blocks(user_contents=[[link]], can=NOTHING) == [link]


# messages without a turn of their own


def test_a_message_is_text_or_parts() -> None:
    assert translate.message_blocks("hi") == [text("hi")]
    assert translate.message_blocks([text("a"), image()])[1]["type"] == "image"


@pytest.mark.parametrize("message", ["", [], [{"type": "text", "text": ""}]])
def test_an_empty_message_is_refused(message: Any) -> None:
    with pytest.raises(BridgeError, match="empty"):
        translate.message_blocks(message)


def test_a_message_with_an_image_alone_is_not_empty() -> None:
    (block,) = translate.message_blocks([image()])
    with pytest.raises(BridgeError, match="image"):
        translate.check_blocks([block], NOTHING)
    translate.check_blocks([block], ALL)


# servers and commands


def test_servers_by_url_with_their_headers_then_those_given_as_they_are() -> None:
    stdio = {"name": "s", "command": "c", "args": [], "env": []}
    config = Config(
        mcp_urls={"a": "http://a/mcp", "b": "http://b/mcp"},
        mcp_headers={"a": {"Authorization": "Bearer x", "X": "y"}, "unused": {"Z": "z"}},
        mcp_servers=[stdio],
    )
    headers = [{"name": "Authorization", "value": "Bearer x"}, {"name": "X", "value": "y"}]
    assert translate.mcp_servers(config) == [
        {"type": "http", "name": "a", "url": "http://a/mcp", "headers": headers},
        {"type": "http", "name": "b", "url": "http://b/mcp", "headers": []},
        stdio,
    ]
    assert translate.mcp_servers(Config()) == []


@pytest.mark.parametrize("command", [[], [""]])
def test_an_agent_needs_a_command(command: list[str]) -> None:
    with pytest.raises(BridgeError, match=r"config\.command") as caught:
        translate.require_command(Config(command=command))
    assert caught.value.code == "invalid_request"
    assert translate.require_command(Config(command=["x"])) == ["x"]


@pytest.mark.parametrize("name", ["base_url", "api_key", "name", "wire"])
def test_what_only_a_profile_has_a_place_for_is_not_taken_silently(name: str) -> None:
    with pytest.raises(BridgeError, match=rf"config\.model\.{name} goes with config\.agent"):
        translate.require_command(Config(command=["x"], model={name: "y"}))
    assert translate.require_command(Config(command=["x"], model={"limits": {}})) == ["x"]


def test_nothing_that_was_given_is_changed() -> None:
    part = {"type": "text", "text": "a"}
    messages = [user([part]), {"role": "assistant", "content": "b"}, user("c")]
    before = json.dumps(messages)
    for first, system in itertools.product((True, False), ("", "s")):
        blocks(messages=messages, system_prompt=system, first=first)
    assert json.dumps(messages) == before
