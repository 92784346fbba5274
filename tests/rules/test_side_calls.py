"""The table of side calls, on the words that agents really send."""

import pytest

from bridge.rules.side_calls import Asked, again, side

TITLE_SCHEMA = (
    b'{"format":{"type":"json_schema","schema":{"properties":{"title":{"type":"string"}}}}}'
)
OTHER_SCHEMA = b'{"format":{"type":"json_schema","schema":{"title":"A","properties":{"a":{}}}}}'


@pytest.mark.parametrize(
    "asked, expected",
    [
        (Asked(), None),
        (Asked(tools=True, first=b"write a title page", last=b"and a title"), None),
        (Asked(first=b'"you are a title generator. you output only'), "title"),
        (Asked(tools=True, schema=TITLE_SCHEMA), "title"),
        (Asked(tools=True, schema=OTHER_SCHEMA), None),
        (Asked(one_token=True, last=b'[{"role":"user","content":"Hi"}]'), "warm-up"),
        (Asked(one_token=True, last=b'[{"role":"user","content":"quota"}]'), "probe"),
        (Asked(one_token=True, tools=True, first=b"title"), "probe"),
        (Asked(tools=True, last=b'"[SUGGESTION MODE: Suggest what the user might"'), "suggestion"),
        (Asked(tools=True, last=b'"what is SUGGESTION MODE?"'), None),
        (Asked(tools=True, last=b"Your task is to create a detailed summary of the "), "summary"),
        (Asked(first=b"tasked with summarizing conversations"), "summary"),
        (Asked(tools=True, first=b"you summarize papers"), None),
    ],
)
def test_each_kind_is_known_by_what_it_says(asked: Asked, expected: str | None) -> None:
    assert side(asked) == expected


@pytest.mark.parametrize(
    "last, expected",
    [
        (b'"Please continue from where you left off."', True),
        (b'[{"type":"text","text":"Please continue from where you left off."}]', True),
        (b'"Please continue from where you left off. Then stop."', False),
        (b'"Please continue from where you left off."},{"role":"user","content":"x"}]', False),
        (
            b'"text":"[Your previous response had no visible output. Please continue.]\\n",'
            b'"cache_control":{"type":"ephemeral"}}]}]',
            True,
        ),
        (
            b'"[Your previous response had no visible output. Please.]"}]},'
            b'{"role":"system","content":[{"text":"# Environment"}]}]',
            True,
        ),
        (
            b'"[Your previous response had no visible output. Please.]"}]},'
            b'{"role":"assistant","content":[{"text":"Yes"}]}]',
            False,
        ),
        (b'"[Your previous response had no visible output.]\\n"},{"text":"go on"}]}]', False),
        (b'"go on"', False),
        (
            b'{"text":"hi"},{"text":"\\n[System: You previously returned an empty response.'
            b' Please call a tool now.]"}],"role":"user"}]',
            True,
        ),
        (b'[{"text":"[System: You previously returned an empty response.]"}]}]', True),
        (
            b'[{"text":"[System: You previously returned an empty response.]"}],"role":"user"},'
            b'{"parts":[{"text":"go on"}],"role":"user"}]',
            False,
        ),
        (b'"You previously returned an empty response, it says."}]}]', False),
    ],
)
def test_an_agents_own_question_for_more_is_known(last: bytes, expected: bool) -> None:
    assert again(Asked(tools=True, last=last)) is expected
