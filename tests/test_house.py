"""The house's rules that no linter knows: docs/architecture.md says why they are there."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("bridge", "protocol_schemas", "conformance")
LONGEST = 400
LONGEST_TEST = 420
UNTESTED: dict[str, str] = {
    "bridge/__main__.py": "three lines, run by every test that spawns the daemon",
}
"""Source files without a test file of their own, and why."""


COVERED: dict[str, str] = {
    "bridge/trace/check/": "tests/trace/check/test_rules.py",
    "bridge/trace/export/": "tests/trace/test_export.py",
    "bridge/trace/replay/": "tests/trace/replay/test_replay.py",
    "bridge/trace/exchanges.py": "tests/session/test_proxied_models.py",
    "bridge/trace/scribe.py": "tests/trace/test_recorder.py",
    "bridge/trace/tables.py": "tests/trace/test_render.py",
    "bridge/trace/traffic.py": "tests/trace/test_export.py",
    "bridge/trace/view.py": "tests/trace/test_render.py",
}
"""Source files, or folders of them, that are one table or one pipe with others and are tested with
them: every rule of `trace check` has its doctored trace in the file named here."""


def files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def has_code(file: Path) -> bool:
    """Whether a module does anything but declare."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    return any(isinstance(node, kinds) for node in ast.walk(ast.parse(file.read_text())))


def mirror(source: Path) -> Path:
    """bridge/x/y.py has tests/x/test_y.py; the other packages keep their name."""
    inner = source.relative_to(ROOT)
    if inner.parts[0] == "bridge":
        inner = inner.relative_to("bridge")
    return ROOT / "tests" / inner.parent / f"test_{inner.name}"


def test_every_source_file_has_its_test_file() -> None:
    missing = [
        f"{name(source)} wants {name(mirror(source))}"
        for source in files("bridge", "protocol_schemas")
        if source.name != "__init__.py"
        and has_code(source)
        and name(source) not in UNTESTED
        and not any(name(source).startswith(covered) for covered in COVERED)
        and not mirror(source).exists()
    ]
    assert not missing, "\n".join(missing)


def test_what_is_excused_from_a_test_file_still_exists_and_has_none() -> None:
    for excused in UNTESTED:
        assert (ROOT / excused).exists()
        assert not mirror(ROOT / excused).exists()
    for covered, test in COVERED.items():
        assert (ROOT / covered).exists()
        assert (ROOT / test).exists()


def test_no_source_file_is_longer_than_a_head_can_hold() -> None:
    long = {
        name(file): length
        for longest, folders in ((LONGEST, SOURCES), (LONGEST_TEST, ("tests",)))
        for file in files(*folders)
        if (length := len(file.read_text().splitlines())) > longest
    }
    assert not long


def test_every_module_says_what_it_is() -> None:
    silent = [
        name(file)
        for file in files(*SOURCES, "tests")
        if (file.name != "__init__.py" or has_code(file))
        and not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert not silent


def test_every_folder_with_modules_is_a_package() -> None:
    bare = {
        name(file.parent) for file in files(*SOURCES) if not (file.parent / "__init__.py").exists()
    }
    assert not bare


def test_every_part_of_the_bridge_stands_in_a_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = {part.strip("() ") for layer in layers for part in re.split(r"[|:]", layer)}
    parts = {
        f"bridge.{entry.stem}"
        for entry in (ROOT / "bridge").iterdir()
        if (entry.suffix == ".py" or (entry / "__init__.py").exists()) and entry.stem != "__init__"
    }
    assert parts <= named, f"not in the layers of pyproject.toml: {sorted(parts - named)}"
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == list(SOURCES)


def test_nothing_is_left_for_later_and_no_test_is_skipped() -> None:
    later = r"\b(TODO|FIXME|XXX)\b"
    skipped = r"pytest\.(skip|xfail|importorskip)|mark\.(skip|xfail)"
    words = re.compile(f"{later}|{skipped}")
    found = [
        f"{name(file)}:{number}: {line.strip()}"
        for file in files(*SOURCES, "tests")
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if words.search(line)
    ]
    assert not found, "\n".join(found)


def test_locks_name_no_registry() -> None:
    locks = [*ROOT.glob("*.lock"), *ROOT.glob("tests/peers/**/*lock*")]
    assert len(locks) >= 8
    named = re.compile(r"--(extra-)?index-url|--find-links|\"resolved\": \"http")
    assert [name(lock) for lock in locks if named.search(lock.read_text())] == []


def test_the_pinned_requirements_cover_what_the_project_needs() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = settings["project"]["dependencies"] + settings["dependency-groups"]["dev"]
    lock = (ROOT / "requirements-dev.lock").read_text()
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))
    names = {re.split(r"[<>=;\[ ]", one)[0].lower().replace("_", "-") for one in wanted}
    assert names <= pinned, f"run `make lock`: {sorted(names - pinned)}"
