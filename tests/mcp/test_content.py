"""Conversion for chat models: never null, never an empty list, never base64 as text."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.content import chat_content

TEXT = {"type": "text", "text": "a"}
PIXEL = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3)
    ),
    max_leaves=8,
)
shaped = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "mood"])},
    optional={
        "text": json_values,
        "data": json_values,
        "mimeType": json_values,
        "uri": json_values,
        "resource": json_values,
        "name": json_values,
    },
)
blocks = st.lists(shaped | json_values, max_size=5)


def test_texts_are_joined_by_newlines() -> None:
    assert chat_content([TEXT, {"type": "text", "text": "b\n"}]) == "a\nb\n"


def test_no_blocks_are_an_empty_string() -> None:
    assert chat_content([]) == ""
    assert chat_content(None) == ""


def test_structured_content_speaks_only_where_the_blocks_say_nothing() -> None:
    assert chat_content([], {"rows": [1]}) == '{"rows":[1]}'
    assert chat_content([{"type": "text", "text": ""}], {"rows": 1}) == '{"rows":1}'
    assert chat_content([TEXT], {"rows": [1]}) == "a"


def test_images_become_data_urls_in_their_place() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert chat_content([TEXT, PIXEL, TEXT]) == [TEXT, image, TEXT]
    assert chat_content([PIXEL]) == [image]


def test_an_embedded_picture_is_a_picture() -> None:
    block = {
        "type": "resource",
        "resource": {"uri": "f:///x", "mimeType": "image/gif", "blob": "R0=="},
    }
    assert chat_content([block]) == [
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0=="}}
    ]


def test_embedded_text_is_its_text() -> None:
    block = {"type": "resource", "resource": {"uri": "f:///x", "text": "inside"}}
    assert chat_content([block]) == [{"type": "text", "text": "inside"}]


def test_bytes_no_message_can_hold_become_a_note() -> None:
    sound = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    blob = {"type": "resource", "resource": {"uri": "f:///x.zip", "blob": "UEsDBA=="}}
    assert chat_content([sound, blob]) == [
        {"type": "text", "text": "[audio: audio/wav, 4 bytes]"},
        {"type": "text", "text": "[resource f:///x.zip: application/octet-stream, 4 bytes]"},
    ]


def test_a_link_gives_address_and_words() -> None:
    link = {"type": "resource_link", "uri": "f:///x", "name": "x", "title": "x", "description": "d"}
    assert chat_content([link]) == [{"type": "text", "text": "f:///x - x - d"}]


def test_an_unknown_block_is_its_json() -> None:
    assert chat_content([{"type": "mood", "level": 3}]) == [
        {"type": "text", "text": '{"type":"mood","level":3}'}
    ]


@given(blocks)
def test_whatever_comes_the_content_is_a_string_or_parts(values: list[Any]) -> None:
    content = chat_content(values)
    if isinstance(content, str):
        return
    assert len(content) == len(values) > 0
    for part in content:
        if part["type"] == "text":
            assert isinstance(part["text"], str)
        else:
            assert part["type"] == "image_url"
            assert part["image_url"]["url"].startswith("data:")


@given(st.lists(st.text(), max_size=6))
def test_all_text_is_always_one_string(texts: list[str]) -> None:
    assert chat_content([{"type": "text", "text": text} for text in texts]) == "\n".join(texts)
