"""Case 87: every pipe is UTF-8, whatever the locale says."""

import pytest

from tests.cases.conftest import Spawn, Way
from tests.peers.agent import scripted

TEXT = "Độ é 北 🎉"
LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"},
    {"LANG": "", "LC_ALL": "", "LC_CTYPE": "xx_YY.nonsense"},
]


@pytest.mark.parametrize("locale", LOCALES, ids=["cp1252", "ascii", "nonsense"])
def test_text_passes_both_ways(spawn: Spawn, way: Way, locale: dict[str, str]) -> None:
    host = spawn("--loop", way.loop, environment=locale, **way.talk)
    assert host.reply(scripted(), f"say {TEXT}") == TEXT
    host.shutdown()
    assert host.log.prompts()[0][0]["text"] == f"say {TEXT}"


@pytest.mark.parametrize("locale", LOCALES[:2], ids=["cp1252", "ascii"])
def test_logging_it_raises_nothing(spawn: Spawn, locale: dict[str, str]) -> None:
    host = spawn("--log-level", "debug", environment=locale)
    noise = f"noise {TEXT}\n".encode()
    agent = ["sh", "-c", f'echo "errors {TEXT}" >&2; exec "$@"', "agent"]
    agent += scripted(f"between={noise.hex()}")
    assert host.reply(agent, f"say {TEXT}") == TEXT
    assert host.prompt(["/no/such/" + TEXT], "hi", session=TEXT)["ok"] is False
    host.shutdown()
    assert "Traceback" not in host.stderr()
    assert "UnicodeEncodeError" not in host.stderr()


def test_names_that_are_not_ascii_work(spawn: Spawn) -> None:
    host = spawn(environment=LOCALES[0])
    there = host.log.path.parent / "Độ é"
    there.mkdir()
    assert host.reply(scripted(), "cwd", cwd=str(there)) == str(there)
    host.shutdown()
