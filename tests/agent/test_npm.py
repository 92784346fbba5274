"""npm's words: what is told of its progress, and what its failures come to."""

from pathlib import Path

import pytest

from bridge.agent.npm import Progress, failed, install, newest, remedy, run
from bridge.errors import BridgeError
from bridge.io.process import Family

ETARGET = """\
{
  "error": {
    "code": "ETARGET",
    "summary": "No matching version found for tiny@9.9.9.",
    "detail": "In most cases you or one of your dependencies are requesting a version"
  }
}
"""
LOG = "/home/u/.npm/_logs/2026-11-29T10_00_00_000Z-debug-0.log"


def told(*lines: str) -> tuple[Progress, list[str]]:
    words: list[str] = []
    progress = Progress(words.append)
    for line in lines:
        progress.line(line)
    return progress, words


def standin(folder: Path, text: str, version: str = "11.19.1") -> dict[str, str]:
    """An environment whose npm is this script."""
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text(f'{{"name":"npm","version":"{version}"}}')
    path = folder / "npm"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_fetches_are_counted_and_scripts_and_retries_named() -> None:
    fetch = "npm http fetch GET 200 https://registry.invalid/tiny 12ms (cache miss)"
    script = "npm info run tiny@1.0.0 postinstall node_modules/tiny node install.js"
    script_ended = "npm info run tiny@1.0.0 postinstall { code: 0, signal: null }"
    retry = "npm http fetch GET https://r/tiny attempt 1 failed with ECONNREFUSED"
    progress, words = told("npm info using npm@11", *[fetch] * 120, script, script_ended, retry)
    assert words == [
        "50 files fetched",
        "100 files fetched",
        "postinstall of tiny@1.0.0",
        "https://r/tiny: try 1 failed (ECONNREFUSED)",
    ]
    assert progress.errors == []


def test_a_failure_is_one_line_with_the_remedy_and_the_log(tmp_path: Path) -> None:
    progress, _ = told(
        "npm error code ETARGET",
        "npm error notarget No matching version found for tiny@9.9.9.",
        f"npm error A complete log of this run can be found in: {LOG}",
    )
    error = failed(ETARGET.encode(), progress, "tiny@9.9.9", tmp_path)
    assert str(error) == (
        "npm could not install tiny@9.9.9: No matching version found for tiny@9.9.9. (ETARGET); "
        f"there is no such version; `npm view PACKAGE versions` lists them (npm's log: {LOG})"
    )
    assert error.extra == {"npm_code": "ETARGET"}


def test_a_failure_that_npm_could_not_put_in_json_is_read_off_its_stderr(tmp_path: Path) -> None:
    progress, _ = told(
        "npm ERR! code ENOSPC",
        "npm ERR! ENOSPC: no space left on device, write",
        "npm ERR! A complete log of this run can be found in:",
        f"npm ERR!     {LOG}",
    )
    error = str(failed(b"", progress, "tiny@1.0.0", tmp_path))
    assert "ENOSPC: no space left on device, write; the disk is full" in error
    assert error.endswith(f"(npm's log: {LOG})")


def test_a_failure_without_words_says_so() -> None:
    error = str(failed(b"", told()[0], "tiny", None))
    assert error == "npm could not look up tiny: npm gave no reason; its log says more"


@pytest.mark.parametrize(("code", "unwritten"), [("ENOSPC", "ENOSPC"), ("ENOENT", "")])
def test_a_file_that_npm_only_warns_of_is_noticed(code: str, unwritten: str) -> None:
    progress, _ = told(f"npm warn tar TAR_ENTRY_ERROR {code}: of some kind, write")
    assert progress.unwritten == unwritten
    if unwritten:
        error = str(failed(b'{"added": 2}', progress, "tiny@1.0.0", Path("/x")))
        assert "ENOSPC: of some kind, write; the disk is full" in error


@pytest.mark.parametrize("code", ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT"])
def test_a_network_that_is_not_there_has_one_remedy(code: str) -> None:
    assert remedy(code).startswith("the registry cannot be reached")


def test_an_unknown_code_has_none() -> None:
    assert remedy("EWHATEVER") == ""


@pytest.mark.anyio
async def test_a_command_is_run_to_its_end_and_its_stderr_read_by_the_line() -> None:
    lines: list[str] = []
    script = "echo out; echo one >&2; printf two >&2; exit 3"
    family = Family()
    assert await run(["sh", "-c", script], {"PATH": "/bin"}, family, on_line=lines.append) == (
        3,
        b"out\n",
    )
    assert lines == ["one", "two"]
    assert (await run(["sh", "-c", "kill -9 $$"], {"PATH": "/bin"}, family))[0] == 1


@pytest.mark.anyio
async def test_npm_gets_exact_versions_and_its_scripts_only_where_they_must_run(
    tmp_path: Path,
) -> None:
    environment = standin(tmp_path / "bin", 'pwd; for a in "$@"; do echo "$a"; done >argv')
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    for scripts in (False, True):
        await install(
            prefix,
            {"@a/tiny": "1.0.0", "tiny-acp": "0.1.0"},
            scripts=scripts,
            environment=environment,
            family=Family(),
            tell=len,
        )
        argv = (prefix / "argv").read_text().splitlines()
        assert argv[:3] == ["install", "--prefix", str(prefix)]
        assert argv[-3:] == ["--", "@a/tiny@1.0.0", "tiny-acp@0.1.0"]
        assert f"--ignore-scripts={str(not scripts).lower()}" in argv
        assert not [word for word in argv if "registry" in word or "cache" in word]


@pytest.mark.anyio
async def test_an_old_npm_is_refused(tmp_path: Path) -> None:
    environment = standin(tmp_path / "bin", "echo 1", "6.14.18")
    with pytest.raises(BridgeError, match=r"is npm 6\.14\.18; 7 or newer is needed"):
        await newest("tiny", environment, Family())
    (tmp_path / "bin/package.json").unlink()
    assert await newest("tiny", environment, Family()) == "1"


@pytest.mark.anyio
async def test_a_missing_npm_is_told(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="npm is not on PATH"):
        await newest("tiny", {"PATH": str(tmp_path)}, Family())


@pytest.mark.anyio
async def test_the_newest_version_is_what_the_registry_calls_latest(tmp_path: Path) -> None:
    environment = standin(tmp_path / "bin", '[ "$2" = tiny ] && echo \'"1.2.3"\'')
    assert await newest("tiny", environment, Family()) == "1.2.3"
    with pytest.raises(BridgeError, match="npm could not look up other: npm gave no reason"):
        await newest("other", environment, Family())
