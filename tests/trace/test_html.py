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
EVIL = "</script><script>window.injected = 1</script><img src=http://h.invalid/ onerror=alert(1)>"


def page_of(script: Script, folder: Path) -> Path:
    source = Source(script.file(folder), Masking(on=True, more=(), environment={}))
    path = folder / "page.html"
    path.write_bytes(html.page("a <title>", source.entries(), check(source.found())))
    return path


def told() -> Script:
    script = Script().opened().prompt(2, EVIL).say("one ").say("two ").say("three").stopped(2)
    return script.from_agent(f"noise {EVIL}").prompt(3).say("x").stopped(3)


def seen_in_browser(path: Path, folder: Path) -> dict[str, Any]:
    install("chromium")
    install("browser")
    command = [str(PEERS / "browser/bin/python"), str(DRIVER), str(path), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


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
    [row] = html._rows(entries, entries)
    assert len(json.loads(names[1])) == len(row)


@pytest.mark.peers
def test_a_person_finds_the_fault_with_the_keyboard_alone(tmp_path: Path) -> None:
    seen = seen_in_browser(page_of(told(), tmp_path), tmp_path)
    assert seen["errors"] == []
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
    assert (tmp_path / "light.png").stat().st_size > 20_000
    assert (tmp_path / "dark.png").stat().st_size > 20_000


@pytest.mark.peers
def test_fifty_thousand_events_are_windowed(tmp_path: Path) -> None:
    script = Script().opened()
    for number in range(12_500):
        ident = number + 2
        script.prompt(ident).say("word ").update("usage_update", used=1, size=2).stopped(ident)
    seen = seen_in_browser(page_of(script, tmp_path), tmp_path)
    assert seen["errors"] == []
    assert seen["status"].startswith("50004 rows")
    assert seen["scroll"]["most"] < 120
    assert seen["scroll"]["last"] == 50_004
