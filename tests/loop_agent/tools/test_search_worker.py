"""What is searched, and what bounds it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.loop_agent.tools import search_worker
from bridge.loop_agent.tools.search_worker import search


def found(root: Path, pattern: str = "x", glob: str = "") -> list[str]:
    answer = search(str(root), pattern, glob)
    assert answer["complete"] is True
    matches = answer["matches"]
    assert isinstance(matches, list)
    return [str(Path(path).relative_to(root)) for path, _, _ in matches]


def test_version_control_and_packages_are_left_out(tmp_path: Path) -> None:
    for name in (".git/a", "node_modules/b/c", "src/d", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert found(tmp_path) == [".hidden", "src/d"]


def test_binary_large_and_odd_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"x\0")
    (tmp_path / "large").write_bytes(b"x" * (search_worker.LARGEST + 1))
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "latin").write_bytes(b"x\xff\n")
    assert found(tmp_path) == ["latin"]


def test_a_glob_fits_names_and_paths(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("a.py", "src/b.py", "src/c.md"):
        (tmp_path / name).write_text("x")
    assert found(tmp_path, glob="*.py") == ["a.py", "src/b.py"]
    assert found(tmp_path, glob="src/*") == ["src/b.py", "src/c.md"]


def test_one_file_can_be_searched_and_long_lines_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("x" * 1000 + "\r\ny\r\n")
    answer = search(str(file), "^x", "")
    assert answer["matches"] == [(str(file), 1, "x" * search_worker.LINE)]


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text("x")
    answer = search(str(tmp_path), "x", "")
    assert answer["complete"] is False
    assert len(answer["matches"]) == 2  # type: ignore[arg-type]


def test_it_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x é")
    query = json.dumps({"root": str(tmp_path), "pattern": "é", "glob": ""})
    command = [sys.executable, "-I", "-S", search_worker.__file__, query]
    run = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(run.stdout)["matches"] == [[str(tmp_path / "f"), 1, "x é"]]
