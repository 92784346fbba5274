"""Case 53: `tool_calls: []` counts as none for the content, and stays unless told otherwise."""

import pytest

from tests.model.harness import OK, answer, standing

pytestmark = pytest.mark.anyio

BODY = (
    b'{"messages":[{"role":"assistant","content":null,"tool_calls":[]},'
    b'{"tool_calls":[ ],"role":"assistant","content":"x"}]}'
)


async def test_content_is_mended_and_the_array_stays() -> None:
    async with standing(answer(OK)) as stand:
        await stand.exchange(stand.request(BODY))
        assert stand.bodies == [BODY.replace(b":null", b':""')]


async def test_the_array_is_left_out_where_that_was_asked_for() -> None:
    async with standing(answer(OK), drop_empty_tool_calls=True) as stand:
        await stand.exchange(stand.request(BODY))
        expected = (
            b'{"messages":[{"role":"assistant","content":""},{"role":"assistant","content":"x"}]}'
        )
        assert stand.bodies == [expected]


async def test_null_fields_are_left_out_where_that_was_asked_for() -> None:
    body = b'{"messages":[{"refusal":null,"role":"assistant","content":null,"audio":null}]}'
    async with standing(answer(OK), drop_nulls=True) as stand:
        await stand.exchange(stand.request(body))
        assert stand.bodies == [b'{"messages":[{"role":"assistant","content":""}]}']
