"""Case 31: a result's blocks arrive as they were sent: same kinds, same order, same bytes."""

import base64
import hashlib
import os

import pytest

from tests.mcp.callers import called
from tests.mcp.fake import Fake

pytestmark = pytest.mark.anyio


def digest(data: str) -> str:
    return hashlib.sha256(base64.b64decode(data)).hexdigest()


async def test_text_pictures_and_sound_stay_what_they_are() -> None:
    image, audio = (base64.b64encode(os.urandom(300_000)).decode() for _ in range(2))
    content = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "audio", "data": audio, "mimeType": "audio/wav"},
        {"type": "text", "text": "b"},
    ]
    async with Fake(eras=("legacy",), result={"content": content}).running() as server:
        result, _ = await called(server, {})
    assert result == {"content": content}
    assert digest(result["content"][1]["data"]) == digest(image)
    assert digest(result["content"][2]["data"]) == digest(audio)
