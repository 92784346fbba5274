"""The play with something missing: what did not happen is never shown as if it had."""

import io

import anyio
import pytest

from bridge.demo.play import play
from bridge.demo.scene import DemoFailed
from bridge.demo.screen import Screen
from bridge.errors import first_of

pytestmark = pytest.mark.anyio


async def test_without_the_proxy_the_failed_call_ends_the_demo() -> None:
    out = io.StringIO()
    with anyio.fail_after(60), pytest.raises(BaseException) as caught:
        await play(Screen(out), ["--mcp-proxy", "off"])
    failure = first_of(caught.value)
    assert isinstance(failure, DemoFailed)
    assert "the attempts were []" in str(failure)
    assert "A tool call whose server has a hiccup" in out.getvalue()
    assert "with permission" not in out.getvalue()
