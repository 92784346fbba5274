"""bridge.agent.environment: what an agent inherits."""

import pytest

from bridge.agent.environment import LOOPBACK, agent_environment

ALL = "127.0.0.1,localhost,::1"


def test_nesting_guards_are_not_inherited_and_everything_else_is():
    inherited = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "9"}
    inherited |= {"HOME": "/root", "CLAUDE_CODE_OTHER": "x", "OPENAI_API_KEY": "k"}
    assert agent_environment(inherited, {}) == {
        "HOME": "/root",
        "CLAUDE_CODE_OTHER": "x",
        "OPENAI_API_KEY": "k",
        "NO_PROXY": ALL,
        "no_proxy": ALL,
    }


def test_the_explicit_environment_wins_and_may_bring_a_guard_back():
    env = agent_environment(
        {"CLAUDECODE": "1", "A": "inherited", "B": "inherited"}, {"CLAUDECODE": "2", "A": "given"}
    )
    assert (env["CLAUDECODE"], env["A"], env["B"]) == ("2", "given", "inherited")


@pytest.mark.parametrize(
    "inherited, completed",
    [
        ("", ALL),
        ("corp.example", f"corp.example,{ALL}"),
        ("corp.example,", f"corp.example,{ALL}"),
        ("LOCALHOST , ::1", "LOCALHOST , ::1,127.0.0.1"),
        ("10.0.0.1 127.0.0.1", "10.0.0.1 127.0.0.1,localhost,::1"),
        (ALL, ALL),
        ("*", "*"),
    ],
)
def test_what_no_proxy_lacks_of_the_loopback_is_added(inherited: str, completed: str):
    env = agent_environment({"NO_PROXY": inherited, "no_proxy": inherited}, {})
    assert env["NO_PROXY"] == env["no_proxy"] == completed


def test_each_spelling_of_no_proxy_is_completed_by_itself():
    env = agent_environment({"NO_PROXY": "a", "no_proxy": "b"}, {})
    assert (env["NO_PROXY"], env["no_proxy"]) == (f"a,{ALL}", f"b,{ALL}")


@pytest.mark.parametrize("only, other", [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")])
def test_a_spelling_that_is_missing_says_what_the_other_says(only: str, other: str):
    assert agent_environment({only: "corp.example"}, {})[other] == f"corp.example,{ALL}"


def test_an_explicit_no_proxy_is_left_as_it_is():
    env = agent_environment({"no_proxy": "inherited"}, {"NO_PROXY": "given"})
    assert env["NO_PROXY"] == "given"
    assert env["no_proxy"] == f"inherited,{ALL}"


def test_completing_twice_changes_nothing():
    once = agent_environment({"NO_PROXY": "corp.example"}, {})
    assert agent_environment(once, {}) == once
    assert all(host in once["NO_PROXY"] for host in LOOPBACK)


def test_neither_argument_is_changed():
    inherited, explicit = {"CLAUDECODE": "1"}, {"A": "1"}
    agent_environment(inherited, explicit)
    assert (inherited, explicit) == ({"CLAUDECODE": "1"}, {"A": "1"})
