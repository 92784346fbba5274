"""Credentials in the heads of HTTP messages: fields, schemes, cookies, parameters."""

import pytest

from bridge.wire import credentials


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "x-api-key", "apikey",
     "Authorization", "GITHUB_PAT", "DB_PASSWD", "MYSQL_PWD", "client_secret", "SSH_PRIVATE_KEY",
     "X-Tok", "X-Goog-Api-Key", "Set-Cookie", "x-amz-security-token"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert credentials.is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "SSH_AUTH_SOCK", "MAX_TOKENS", "KEYBOARD", "MONKEY", "X-Keyed",
     "TOKENIZERS_PARALLELISM", "GIT_AUTHOR_NAME", "Content-Type", "keys-of"],
)  # fmt: skip
def test_names_of_what_is_none(name: str) -> None:
    assert not credentials.is_secret_name(name)


@pytest.mark.parametrize(
    "name, value, found",
    [
        ("Authorization", "Bearer abc", ["Bearer abc", "abc"]),
        ("authorization", "DPoP  abc", ["DPoP  abc", "abc"]),
        ("Authorization", "some words", ["some words"]),
        ("Authorization", "Basic dXNlcjpwOmFzcw==",
         ["Basic dXNlcjpwOmFzcw==", "dXNlcjpwOmFzcw==", "user:p:ass", "p:ass"]),
        ("Proxy-Authorization", "Basic dXNlcjpwOmFzcw",
         ["Basic dXNlcjpwOmFzcw", "dXNlcjpwOmFzcw", "user:p:ass", "p:ass"]),
        ("Authorization", "Basic !", ["Basic !", "!"]),
        ("Authorization", "Basic /w==", ["Basic /w==", "/w=="]),
        ("Authorization", "Basic", ["Basic"]),
        ("x-api-key", "  abc ", ["abc"]),
        ("x-api-key", " ", []),
        ("Cookie", "a=1; sid=secret-1", ["a=1; sid=secret-1", "1", "secret-1"]),
        ("Set-Cookie", "sid=secret-2; Path=/", ["sid=secret-2; Path=/", "secret-2", "/"]),
        ("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-4, beta", ["sk-4"]),
        ("Idempotency-Key", "abc", []),
        ("Sec-WebSocket-Key", "abc", []),
        ("Accept", "abc", []),
    ],
)  # fmt: skip
def test_credentials_are_found_in_the_fields_that_hold_them(
    name: str, value: str, found: list[str]
) -> None:
    assert list(credentials.of_field(name, value)) == found


def test_a_parameter_s_secret_is_found_as_sent_and_as_meant() -> None:
    query = "k%65y=a%2Fb+c&token=&keys=no&sig=%zz&flag&page=2&x_api_key=v"
    assert list(credentials.of_query(query)) == [
        ("key", "a%2Fb+c"), ("key", "a/b c"), ("sig", "%zz"), ("x_api_key", "v"),
    ]  # fmt: skip
    assert list(credentials.of_query("")) == []
