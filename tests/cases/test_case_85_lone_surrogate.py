"""Case 85: a lone surrogate in a request is JSON as JavaScript writes it: mended, not mangled."""

import pytest

from tests.model.harness import OK, answer, standing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", [r"\ud83d", r"\uDE00 tail", r"\ud83d\ud83d\ude00", r"\\ud83d"])
async def test_it_passes_beside_a_mended_content(text: str) -> None:
    frame = '{"messages":[{"role":"user","content":"%s"},{"role":"assistant","content":%s}]}'
    async with standing(answer(OK)) as stand:
        await stand.exchange(stand.request((frame % (text, "null")).encode()))
        await stand.exchange(stand.request((frame % (text, f'"{text}"')).encode()))
        assert stand.bodies == [
            (frame % (text, '""')).encode(),
            (frame % (text, f'"{text}"')).encode(),
        ]
        assert (await stand.event(1))["outcome"] == "complete"
