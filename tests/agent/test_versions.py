"""Versions that may be asked for, and those that are known not to do."""

import json
from pathlib import Path

import pytest

from bridge.agent.versions import (
    Fault,
    check,
    faults,
    faulty,
    manifest,
    numbers,
    package_version,
    with_packages,
    within,
)
from bridge.errors import UsageError
from protocol_schemas.profile import Install, Launch, Profile, WireUse


def agent(install: Install | None) -> Profile:
    return Profile(
        name="tiny",
        title="tiny",
        install=install,
        launch=Launch(command=["tiny"]),
        wires={"chat": WireUse()},
    )


PAIR = agent(Install(packages={"tiny": "1.0.0", "tiny-acp": "0.1.0"}, scripts=True))


@pytest.mark.parametrize("version", ["1.2.3", "2026.9.6", "1.0.0-rc.1", "0.5.0-alpha-x+build.7"])
def test_an_exact_version_is_taken(version: str) -> None:
    check("tiny", version)


@pytest.mark.parametrize("version", ["", "1.0.0 ", "1;ls", "^1.0.0", "../x", "1.0.0\n", "a@b", "ä"])
def test_characters_that_npm_takes_for_something_else_are_refused(version: str) -> None:
    with pytest.raises(UsageError, match="only letters, digits"):
        check("tiny", version)


@pytest.mark.parametrize(
    "version", ["latest", "1", "1.2", "1.x", "..", "v1.2.3", "1.2.3.4", "-1.0.0"]
)
def test_what_does_not_say_which_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=r"an exact one is needed.*npm view tiny"):
        check("tiny", version)


def test_versions_replace_the_pinned_ones_and_nothing_else() -> None:
    install = with_packages(PAIR, {"tiny-acp": "0.2.0"}).install
    assert install is not None
    assert install.packages == {"tiny": "1.0.0", "tiny-acp": "0.2.0"}
    assert install.scripts is True
    assert with_packages(PAIR, {}) == PAIR


def test_a_package_that_is_none_of_the_agents_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no package 'other': tiny, tiny-acp"):
        with_packages(PAIR, {"other": "1.0.0"})


def test_an_agent_that_is_not_from_npm_takes_no_versions() -> None:
    assert with_packages(agent(None), {}) == agent(None)
    with pytest.raises(UsageError, match="installs nothing"):
        with_packages(agent(None), {"tiny": "1.0.0"})


def test_a_profiles_own_version_is_checked_too() -> None:
    with pytest.raises(UsageError, match="'latest' of tiny"):
        with_packages(agent(Install(packages={"tiny": "latest"})), {})


@pytest.mark.parametrize(
    ("version", "bound", "inside"),
    [
        ("0.63.9", "<0.64", True),
        ("0.64.0", "<0.64", False),
        ("0.101.0", "<0.64", False),
        ("7.8.1", "=7.8.1", True),
        ("7.8.2", "=7.8.1", False),
        ("1.0.0-rc.1", "<1.0.1", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bound: str, inside: bool) -> None:
    assert within(version, bound) is inside


def test_a_version_without_numbers_is_the_oldest() -> None:
    assert numbers("latest") == (0,)


def test_each_known_fault_has_a_bound_and_a_reason() -> None:
    known = faults()
    assert known
    for fault in known:
        assert fault.versions[0] in "<="
        assert numbers(fault.versions[1:]) != (0,)
        assert fault.reason


def test_a_fault_is_told_for_the_versions_that_have_it() -> None:
    known = [Fault("tiny", "<2", "it loses things")]
    assert faulty("tiny", "1.9.9", known) == "it loses things"
    assert faulty("tiny", "2.0.0", known) == ""
    assert faulty("other", "1.0.0", known) == ""


def test_the_version_of_a_command_is_that_of_the_package_around_it(tmp_path: Path) -> None:
    home = tmp_path / "node_modules/tiny"
    (home / "dist").mkdir(parents=True)
    (home / "package.json").write_text(json.dumps({"name": "tiny", "version": "1.2.3"}))
    (home / "dist/package.json").write_text("{broken")
    command = home / "dist/index.js"
    command.touch()
    link = tmp_path / "tiny"
    link.symlink_to(command)
    assert package_version(link, "tiny") == "1.2.3"
    assert package_version(link, "other") is None
    assert manifest(home) == ("tiny", "1.2.3")
    assert manifest(tmp_path) is None
