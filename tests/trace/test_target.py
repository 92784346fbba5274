"""The file a recording goes to: private, appended to, never shared by two."""

import os
from pathlib import Path

import pytest

from bridge.errors import UsageError
from bridge.trace.target import open_target


def test_a_new_file_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    path, fd = open_target(str(tmp_path / "t"))
    os.close(fd)
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"old\n")
    _, fd = open_target(str(tmp_path / "t"))
    os.write(fd, b"new\n")
    os.close(fd)
    assert (tmp_path / "t").read_bytes() == b"old\nnew\n"


def test_in_a_directory_each_recording_has_a_file_of_its_own(tmp_path: Path) -> None:
    path, fd = open_target(str(tmp_path))
    os.close(fd)
    assert Path(path).parent == tmp_path
    assert path.endswith(f"-{os.getpid()}.trace.ndjson")


def test_two_recordings_to_one_name_do_not_mix(tmp_path: Path) -> None:
    first, one = open_target(str(tmp_path / "run.trace.ndjson"))
    second, other = open_target(str(tmp_path / "run.trace.ndjson"))
    os.close(one)
    os.close(other)
    assert first != second
    assert Path(second).name == f"run.{os.getpid()}.trace.ndjson"


@pytest.mark.parametrize("name", ["no/such/dir/t", "file/t"])
def test_a_file_that_cannot_be_opened_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match=r"--record .*/t: .*; make the directory"):
        open_target(str(tmp_path / name))
