"""What the official conformance kit asks of a version 1 agent, and the test that shows it.

Ids are those of agentclientprotocol/acp-tck; its advisory and informational ones included. An id
without a test, or a test that is no longer there, fails here.
"""

import ast
from pathlib import Path

HERE = Path(__file__).parent
LINE = "acp_client.AcpClient._take"
RESPONSE = "acp_client.AcpClient._take_response"
"""Checked on every line that any agent of these tests writes."""

MANIFEST: dict[str, str] = {
    "TRANSPORT-001": LINE,
    "TRANSPORT-002": LINE,
    "JSONRPC-001": "test_agent.test_an_id_comes_back_in_its_own_type",
    "JSONRPC-002": RESPONSE,
    "JSONRPC-003": "test_agent.test_notifications_are_never_answered",
    "JSONRPC-004a": "test_agent.test_every_advertised_method_is_there_and_no_other",
    "JSONRPC-005a": "test_agent.test_what_is_no_message_is_refused_and_the_agent_lives",
    "INIT-001": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "INIT-002": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "INIT-003": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "INIT-004a": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "SCHEMA-001": LINE,
    "SCHEMA-002a": "acp_client.check",
    "SESSION-001": "acp_client.AcpClient.new",
    "SESSION-002": "test_agent.test_sessions_run_beside_each_other",
    "PROMPT-001": "test_turn.test_finish_reasons_become_stop_reasons",
    "PROMPT-002": "test_turn.test_text_is_streamed_as_one_message",
    "PROMPT-003a": "test_turn.test_images_and_resources_reach_the_model_in_place",
    "CANCEL-001": "test_turn.test_cancel_in_mid_stream",
    "CANCEL-002": "test_turn.test_cancel_in_mid_stream",
    "LOAD-001": "test_sessions.test_load_shows_the_whole_history_before_it_answers",
    "LOAD-002": "test_sessions.test_load_shows_the_whole_history_before_it_answers",
    "LOAD-003a": RESPONSE,
    "RESUME-001": "test_sessions.test_resume_shows_nothing_and_goes_on",
    "RESUME-002": "test_sessions.test_resume_shows_nothing_and_goes_on",
    "LIST-001": "test_sessions.test_list_has_the_newest_first_and_can_be_narrowed",
    "LIST-002": "test_sessions.test_list_has_the_newest_first_and_can_be_narrowed",
    "DELETE-001": "test_sessions.test_a_deleted_session_is_gone_and_can_be_deleted_again",
    "DELETE-002a": "test_sessions.test_a_deleted_session_is_gone_and_can_be_deleted_again",
    "CLOSE-001": "test_sessions.test_a_closed_session_can_be_opened_again",
    "CLOSE-002": "test_turn.test_close_cancels_the_turn",
    "MODES-001": "test_agent.test_modes_are_told_where_they_matter",
    "MODES-002": "test_agent.test_an_unknown_mode_is_refused",
    "PROMPTCAP-001": "test_turn.test_images_and_resources_reach_the_model_in_place",
    "PROMPTCAP-002": "test_turn.test_a_prompt_that_cannot_be_sent_is_refused_and_leaves_no_turn",
    "PROMPTCAP-003": "test_turn.test_images_and_resources_reach_the_model_in_place",
    "AUTH-001a": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "AUTH-002": "test_agent.test_version_1_is_answered_whatever_is_asked",
    "AUTH-005a": RESPONSE,
    "CLIENTCAP-001": LINE,
    "CLIENTCAP-002": LINE,
    "CLIENTCAP-003": LINE,
    "EXT-001": "test_agent.test_every_advertised_method_is_there_and_no_other",
    "META-001a": "test_agent.test_meta_is_accepted_everywhere",
    "ERROR-001a": RESPONSE,
    "SHUTDOWN-001a": "test_main.test_the_end_of_input_is_a_clean_end",
    "STDERR-001i": "acp_client.AcpClient.check_clean",
    "INFO-PARSE-001i": "test_agent.test_what_is_no_message_is_refused_and_the_agent_lives",
    "INFO-INVALIDREQ-001i": "test_agent.test_what_is_no_message_is_refused_and_the_agent_lives",
    "INFO-UNKNOWNSESSION-001i": "test_agent.test_an_unknown_session_is_named_in_the_error",
}

NOT_OFFERED = {
    "ADDDIRS-001": "additionalDirectories is not advertised",
    "CONFIG-001": "session/new gives no configOptions",
    "CONFIG-002": "session/new gives no configOptions",
    "CONFIG-003": "session/new gives no configOptions",
    "AUTH-003": "there are no authMethods",
    "AUTH-004": "there are no authMethods",
}


def names(module: str) -> set[str]:
    """What a module defines: functions, and methods as Class.method."""
    found: set[str] = set()
    for node in ast.parse((HERE / f"{module}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return found


def test_every_requirement_is_shown_by_something_that_exists() -> None:
    gone = {
        ident: place
        for ident, place in MANIFEST.items()
        if place.partition(".")[2] not in names(place.partition(".")[0])
    }
    assert not gone


def test_every_requirement_of_the_kit_is_here_once() -> None:
    assert len(MANIFEST) + len(NOT_OFFERED) == 56
    assert not MANIFEST.keys() & NOT_OFFERED.keys()
