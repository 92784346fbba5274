"""The trace page: self-contained, and usable in a real browser with keyboard and reader."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridge.trace import html
from bridge.trace.check.checker import check
from bridge.trace.export.masking import Masking
from bridge.trace.export.source import Source
from tests.peers.install import PEERS, install
from tests.trace.traces import Script

DRIVER = Path(__file__).parents[1] / "peers/page_driver.py"
SHOTS = Path(__file__).parents[2] / ".screenshots"
"""Where a run leaves what the browser showed; the terminal summary names it (conftest.py)."""
EVIL = "</script><script>window.injected = 1</script><img src=http://h.invalid/ onerror=alert(1)>"


def page_of(script: Script, folder: Path) -> Path:
    source = Source(script.file(folder), Masking(on=True, more=(), environment={}))
    path = folder / "page.html"
    path.write_bytes(html.page("a <title>", source.entries(), check(source.found())))
    return path


def told() -> Script:
    script = Script().opened().prompt(2, EVIL).say("one ").say("two ").say("three").stopped(2)
    return script.from_agent(f"noise {EVIL}").prompt(3).say("x").stopped(3)


def seen_in_browser(what: str, target: object, *more: object) -> dict[str, Any]:
    """What a person with a browser sees; the screenshots are in SHOTS."""
    install("chromium")
    install("browser")
    SHOTS.mkdir(exist_ok=True)
    command = [str(PEERS / "browser/bin/python"), str(DRIVER), what, str(target), str(SHOTS)]
    ended = subprocess.run([*command, *map(str, more)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["errors"] == []
    return seen


def test_the_page_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    text = page_of(told(), tmp_path).read_text()
    assert "default-src 'none'" in text
    assert re.findall(r"<(?:link|img|iframe|script[^>]*\ssrc|style[^>]*\ssrc)", text) == []
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<title>a &lt;title></title>" in text


def test_the_page_s_data_are_the_events_and_the_findings(tmp_path: Path) -> None:
    text = page_of(told(), tmp_path).read_text()
    found = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert len(data["rows"]) == len(told().records)
    assert [finding["rule"] for finding in data["findings"]][:1] == ["noise"]
    assert any(EVIL in row[17].replace("\\", "") for row in data["rows"])


def test_members_of_a_row_are_named_as_the_script_names_them() -> None:
    script = Path(html.__file__).with_name("page") / "page.js"
    names = re.search(r"const KEYS = (\[.*?\]);", script.read_text(), re.DOTALL)
    assert names is not None
    entries = Script().say("x").entries()
    [row] = html.data(entries, [(-1, -1)], [])["rows"]
    assert len(json.loads(names[1])) == len(row)


@pytest.mark.peers
def test_a_person_finds_the_fault_with_the_keyboard_alone(tmp_path: Path) -> None:
    seen = seen_in_browser("look", page_of(told(), tmp_path))
    assert [url.partition(":")[0] for url in seen["requests"]] == ["file"]
    assert seen["injected"] is True
    assert seen["title"] == "a <title>"
    assert seen["status"].startswith("11 rows of 13 events;")
    assert "session/new" in seen["third"]
    assert "away from the host" in seen["third"]
    assert seen["detail"] == "session/new"
    assert seen["last"] == "11"
    assert "error: noise" in seen["finding"]
    assert (seen["focus"], seen["back"]) == ("detail", "grid")
    assert seen["filtered"].startswith("2 rows")
    assert "response" in seen["partner"]
    assert "no field chanel" in seen["wrong"]
    assert seen["invalid"] == "true"
    assert seen["apart"].startswith("13 rows")
    assert seen["clicked"] == "2"
    assert seen["theme"] == "dark"
    assert seen["overflow"] <= 0
    for name in ("light", "dark", "narrow"):
        assert (SHOTS / f"{name}.png").stat().st_size > 15_000
    for theme in ("light", "dark"):
        assert seen["contrast"][theme]["least"] >= 4.5, seen["contrast"]
    # What a screen reader is given: who is what, by name.
    assert seen["active"] == seen["third"]
    for part in (
        "- banner:",
        '- heading "a <title>" [level=1]',
        '- searchbox "Filter"',
        '- checkbox "One row a run" [checked]',
        '- button "Next finding"',
        "- status: 11 rows of 13 events; ",
        '- region "Events":',
        '- listbox "Events, one a row":',
        '- region "Message":',
        '- heading "session/new" [level=2]',
    ):
        assert part in seen["tree"], seen["tree"]
    assert re.search(r'- option "line 4, .*session/new.*" \[selected\]', seen["tree"])


@pytest.mark.peers
def test_a_stranger_finds_a_planted_fault_from_the_page_alone(tmp_path: Path) -> None:
    script = Script().opened().prompt(2).say("one ").say("two").stopped(2)
    script.prompt(3).answer(9, {"stopReason": "end_turn"}).stopped(3)
    fault = next(i for i, r in enumerate(script.records, 2) if r.get("msg", {}).get("id") == 9)
    seen = seen_in_browser("stranger", page_of(script, tmp_path))
    for way in ("clicked", "pressed"):
        message = seen[way]["message"]
        assert "error: response-without-request" in message
        assert "JSON-RPC 2.0" in message
        assert f"line {fault}," in seen[way]["row"]
        assert "error response-without-request" in seen[way]["row"]
    assert seen["tabbed"]["by"] == "Next finding"
    assert f"line {fault}," in seen["tabbed"]["row"]
    assert (SHOTS / "finding.png").stat().st_size > 15_000


@pytest.mark.peers
def test_fifty_thousand_events_are_windowed(tmp_path: Path) -> None:
    script = Script().opened()
    for number in range(12_500):
        ident = number + 2
        script.prompt(ident).say("word ").update("usage_update", used=1, size=2).stopped(ident)
    seen = seen_in_browser("scroll", page_of(script, tmp_path))
    assert seen["status"].startswith("50004 rows")
    # What a frame costs is the rows that it makes: those of the window, whatever the trace's size.
    assert seen["scroll"]["most"] < 120
    assert seen["scroll"]["made"] < 120
    assert seen["scroll"]["last"] == 50_004
