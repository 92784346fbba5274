"""Every kind of content block, and what is refused."""

from typing import Any

import pytest

from bridge.errors import RequestFailed
from bridge.loop_agent.prompt import chat_content, system_text, title_of

TEXT = {"type": "text", "text": "hi"}


def test_one_text_is_plain_and_several_blocks_are_parts() -> None:
    assert chat_content([TEXT]) == "hi"
    assert chat_content([TEXT, TEXT]) == [TEXT, TEXT]


def test_an_embedded_picture_is_shown_to_the_model() -> None:
    resource = {"uri": "file:///p.png", "mimeType": "image/png", "blob": "aGk="}
    assert chat_content([{"type": "resource", "resource": resource}]) == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    ]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "text"}, "prompt[1].text must be a string"),
        ({"type": "image", "data": "x"}, "prompt[1].mimeType"),
        ({"type": "audio", "data": "x", "mimeType": "audio/wav"}, "prompt[1] is audio"),
        ({"type": "video"}, "unknown type 'video'"),
        ({}, "unknown type None"),
        ({"type": "resource"}, "prompt[1].resource is not an object"),
        ({"type": "resource", "resource": {"text": "x"}}, "prompt[1].resource.uri"),
        (
            {"type": "resource", "resource": {"uri": "file:///x.bin", "blob": "AA=="}},
            "binary resource (of no stated type): file:///x.bin",
        ),
        ({"type": "resource_link", "uri": "x"}, "prompt[1].name"),
    ],
)
def test_a_block_that_cannot_go_to_the_model_is_named(block: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        chat_content([TEXT, block])
    assert caught.value.code == -32602
    assert words in caught.value.message


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(RequestFailed, match="empty"):
        chat_content([])


def test_a_system_prompt_is_text_alone() -> None:
    assert system_text([TEXT, TEXT]) == "hi\n\nhi"
    for wrong in ([], [{"type": "image"}], [{"type": "text", "text": 1}]):
        with pytest.raises(RequestFailed):
            system_text(wrong)


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        (["\n  first  \nsecond"], "first"),
        (["  ", "then this"], "then this"),
        (["x" * 81], "x" * 79 + "…"),
        (["x" * 80], "x" * 80),
        ([], "(no text)"),
    ],
)
def test_a_title_is_the_first_line_there_is(texts: list[str], title: str) -> None:
    blocks: list[dict[str, Any]] = [{"type": "image"}]
    blocks += [{"type": "text", "text": text} for text in texts]
    assert title_of(blocks) == title
