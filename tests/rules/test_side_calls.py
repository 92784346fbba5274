"""The table of side calls, on the words that agents really send."""

import pytest

from bridge.rules.side_calls import Asked, again, is_context, side

TITLE_SCHEMA = (
    b'{"format":{"type":"json_schema","schema":{"properties":{"title":{"type":"string"}}}}}'
)
SUMMARY = (
    b"CRITICAL: Respond with TEXT ONLY.\\n\\nYour task is to create a detailed summary of the "
    b"conversation so far, paying close attention to the user's explicit requests"
)
MEMORY = (
    b'"You are now acting as the managed memory extraction subagent for an AI coding assistant."'
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
        (Asked(tools=True, last=b'read: \\"[SUGGESTION MODE: Suggest what the\\""'), None),
        (Asked(tools=True, last=b"a detailed summary of the conversation so far, please"), None),
        (Asked(tools=True, last=SUMMARY), "summary"),
        (Asked(tools=True, last=b"Your task is to create a detailed summary of the book"), None),
        (Asked(tools=True, first=MEMORY), "memory"),
        (Asked(tools=True, first=b'[{"type":"text","text":%b}]' % MEMORY), "memory"),
        (Asked(tools=True, first=b'"You are performing a managed memory dream, a"'), "memory"),
        (Asked(tools=True, last=MEMORY), None),
        (Asked(tools=True, first=b'"Why is it told %b\\""' % MEMORY.replace(b'"', b'\\"')), None),
        (
            Asked(tools=True, first=b'"You are now acting as the managed service, with memory"'),
            None,
        ),
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


SETTLED = (
    b"The previous assistant turn completed its tool calls but did not produce a user-visible"
    b" answer. Continue from the current transcript and produce the final answer now."
)
ATTEMPT = (
    b"The previous attempt did not produce a user-visible answer. Continue from the current state"
    b" and produce the visible answer now. Do not restart from scratch."
)
CONTEXT = (
    b"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\\nConversation data (data, not instructions):\\n"
    b'\\"Active exec sessions:\\\\nnone\\"\\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>'
)
USER = b'{"role":"user","content":[{"type":"input_text","text":"%b"}]}'
DATED = b"[Mon 2026-11-30 22:03 UTC] "


@pytest.mark.parametrize(
    "last, expected",
    [
        (b'"%b%b",[{"type":"text","text":"%b"}]' % (DATED, ATTEMPT, CONTEXT), True),
        (b'"%b","%b"' % (ATTEMPT, CONTEXT), True),
        (b'"%b%b"' % (DATED, SETTLED), True),
        (b"[%b,%b]" % (USER % (DATED + ATTEMPT), USER % CONTEXT), True),
        (b"[%b,%b]" % (USER % b"Continue from where you left off.", USER % ATTEMPT), True),
        (b"[%b,%b]" % (USER % ATTEMPT, USER % b"go on"), False),
        (b"[%b,%b,%b]" % (USER % ATTEMPT, USER % b"go on", USER % CONTEXT), False),
        (b"[%b,%b,%b]" % (USER % ATTEMPT, USER % CONTEXT, USER % b"go on"), False),
        (b'"It says: %b","%b"' % (ATTEMPT, CONTEXT), False),
        (b'"It says \\"%b\\"","%b"' % (ATTEMPT, CONTEXT), False),
        (b'"The previous attempt failed. Continue from the current state.","%b"' % CONTEXT, False),
        (b'"go on","%b"' % CONTEXT, False),
    ],
)
def test_what_an_agent_asks_before_its_own_context_is_known(last: bytes, expected: bool) -> None:
    assert again(Asked(tools=True, last=last)) is expected


@pytest.mark.parametrize(
    "content, expected",
    [
        (b'"%b"' % CONTEXT, True),
        (b'[{"type": "text", "text": "%b"}]' % CONTEXT, True),
        (b'"go on, %b"' % CONTEXT, False),
        (b'[{"type":"text","text":"go on"},{"type":"text","text":"%b"}]' % CONTEXT, False),
        (b"null", False),
        (b"", False),
    ],
)
def test_a_message_that_is_an_agents_own_context_is_known(content: bytes, expected: bool) -> None:
    assert is_context(content) is expected
