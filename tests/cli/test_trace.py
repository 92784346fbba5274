"""`trace` on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.trace.traces import HEAD, Script

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [BRIDGE, "trace", *arguments], capture_output=True, timeout=60, env=os.environ | environment
    )


def out(*arguments: str, **environment: str) -> str:
    ended = run(*arguments, **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode()


def script() -> Script:
    return Script().opened().prompt(2, "hello").say("one ").say("two é").stopped(2)


def test_show_prints_a_line_a_row_after_the_head(tmp_path: Path) -> None:
    lines = out("show", script().file(tmp_path)).splitlines()
    assert "2026-01-01T00:00:00" in lines[0]
    assert len(lines) == 1 + 7
    assert "×2" in lines[6]


def test_show_takes_a_filter_as_one_argument_or_several(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    assert out("show", file, "dir:in", "is:response") == out("show", file, "dir:in is:response")


def test_show_can_keep_each_chunk_apart(tmp_path: Path) -> None:
    assert len(out("show", "--no-collapse", script().file(tmp_path)).splitlines()) == 9


def test_raw_gives_the_recorded_bytes_and_nothing_else(tmp_path: Path) -> None:
    told = Script().from_agent('{"a" : 1.0}').from_agent("noise", end="\r\n")
    told.from_agent("cut off", end="").to_agent("not this")
    ended = run("show", "--raw", told.file(tmp_path), "dir:in")
    assert ended.stdout == b'{"a" : 1.0}\nnoise\r\ncut off'


def test_what_depends_on_what_comes_later_is_found_too(tmp_path: Path) -> None:
    file = script().call(9, "session/close", {}).file(tmp_path)
    [_, line] = out("show", file, "is:unanswered").splitlines()
    assert "session/close" in line


def test_damage_is_shown_where_it_is(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    with Path(file).open("a") as end:
        end.write('garbage\n{"t":1,"ch"')
    lines = out("show", file).splitlines()
    assert "unreadable" in lines[-2]
    assert "cut off in the middle" in lines[-1]


def test_a_wrong_filter_and_a_missing_file_are_usage_errors(tmp_path: Path) -> None:
    for arguments in ((script().file(tmp_path), "chanel:acp"), (str(tmp_path / "none"),)):
        ended = run("show", *arguments)
        assert ended.returncode == 2
        assert b"Traceback" not in ended.stderr
        assert len(ended.stderr.splitlines()) == 1


def test_follow_ends_with_the_recording(tmp_path: Path) -> None:
    file = script().add("trace", kind="end", data={"reason": "closed"}).file(tmp_path)
    lines = out("show", "--follow", file).splitlines()
    assert "closed" in lines[-1]


def test_tail_shows_the_last_rows_and_what_comes(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    command = [BRIDGE, "trace", "tail", "-n", "2", file]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        first = [tail.stdout.readline(), tail.stdout.readline()]
        with Path(file).open("a") as end:
            end.write('{"t":200000000,"ch":"stderr","dir":"in","text":"late"}\n')
            end.write('{"t":300000000,"ch":"trace","kind":"end"}\n')
        rest = tail.stdout.read().splitlines()
    assert "agent_message_chunk" in first[0]
    assert "end_turn" in first[1]
    assert "late" in rest[0]
    assert len(rest) == 2


def test_tail_gives_the_last_bytes_too(tmp_path: Path) -> None:
    file = Path(script().add("trace", kind="end", data={"reason": "x"}).file(tmp_path))
    lines = out("show", "--raw", str(file), "channel:acp").splitlines()
    assert len(lines) > 2
    assert out("tail", "-n", "2", "--raw", str(file), "channel:acp").splitlines() == lines[-2:]
    assert out("tail", "-n", "0", "--raw", str(file)) == ""


def test_stats_as_tables_and_as_json(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    assert "session/prompt" in out("stats", file)
    figures = json.loads(out("stats", "--json", file))
    assert figures["turns"][0]["stop_reason"] == "end_turn"
    assert [item["method"] for item in figures["methods"]] == [
        "initialize", "session/new", "session/prompt",
    ]  # fmt: skip
    assert json.loads(out("stats", "--json", file, "dir:in"))["events"] == 5


def test_a_trace_comes_from_stdin_too(tmp_path: Path) -> None:
    data = Path(script().file(tmp_path)).read_bytes()
    command = [BRIDGE, "trace", "stats", "-", "--json"]
    ended = subprocess.run(command, input=data, capture_output=True, timeout=60, check=True)
    assert json.loads(ended.stdout)["events"] == 8


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    told = Script()
    for number in range(20_000):
        told.prompt(number)
    command = f"'{BRIDGE}' trace show '{told.file(tmp_path)}' | head -1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, text=True)
    assert ended.stdout.splitlines()[-1] == "0"
    assert ended.stderr == ""


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    text = out("show", script().file(tmp_path), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert text.isascii()
    assert HEAD["program"] in text


def test_check_lists_findings_and_fails_for_errors(tmp_path: Path) -> None:
    closed = {"reason": "closed"}
    clean = script().add("trace", kind="end", data=closed).file(tmp_path, "clean")
    assert out("check", clean) == "0 error, 0 warning, 0 info\n"
    told = script().from_agent("noise").say("late").add("trace", kind="end", data=closed)
    ended = run("check", told.file(tmp_path, "faulty"))
    assert ended.returncode == 3
    text = ended.stdout.decode()
    assert "line 10 " in text
    assert " noise " in text
    assert "1 error, 1 warning, 0 info" in text


def test_check_takes_a_filter_a_least_severity_and_gives_json(tmp_path: Path) -> None:
    file = script().from_agent("noise").say("late").file(tmp_path)
    warnings = run("check", file, "!is:noise", "--json", "--least", "warning")
    assert warnings.returncode == 0
    assert [item["rule"] for item in json.loads(warnings.stdout)] == ["update-after-end"]


def test_check_lists_a_repeated_rule_five_times(tmp_path: Path) -> None:
    told = script()
    for _ in range(8):
        told.from_agent("noise")
    file = told.file(tmp_path)
    assert run("check", file).stdout.count(b"error    noise ") == 5
    assert b"3 more of noise" in run("check", file).stdout
    assert run("check", "--all", file).stdout.count(b"error    noise ") == 8


def test_export_writes_a_private_file_and_diff_compares(tmp_path: Path) -> None:
    file, copy = script().file(tmp_path), tmp_path / "copy.ndjson"
    assert out("export", file, "-o", str(copy)) == ""
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "8 messages are the same, 0 are not" not in out("diff", file, str(copy), "channel:none")
    assert run("diff", file, str(copy)).returncode == 0
    other = script().say("more").file(tmp_path, "other")
    changed = run("diff", file, other, "--json")
    assert changed.returncode == 3
    assert len(json.loads(changed.stdout)["messages"]) == 1


def test_a_wrong_filter_leaves_the_output_as_it_was(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    for command in ("export", "html"):
        ended = run(command, script().file(tmp_path), "bogus:1", "-o", str(kept))
        assert ended.returncode == 2
        assert kept.read_text() == "kept"


def test_what_a_served_page_does_not_take_is_refused(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    for more in (["-o", "x"], ["--title", "x"], ["channel:acp"]):
        ended = run("html", "--serve", file, *more)
        assert ended.returncode == 2
        assert b"--serve serves all of the trace" in ended.stderr


def test_html_goes_to_stdout_or_a_file(tmp_path: Path) -> None:
    file = script().file(tmp_path)
    assert out("html", file, "--title", "a run").startswith("<!doctype html>")
    ended = run("html", file, "-o", str(tmp_path / "no" / "page.html"))
    assert ended.returncode == 2
    assert b"--output" in ended.stderr
