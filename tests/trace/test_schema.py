"""The exported JSON Schema of trace lines is true of what is written."""

import json
import struct
from typing import Any

import jsonschema
import pytest

from bridge.trace.frames import Kind
from protocol_schemas import export
from tests.trace.test_ledger import Writer


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads((export.FOLDER / "trace.json").read_text())
    assert set(schema["$defs"]) == {"Head", "Record"}
    schema["anyOf"] = [{"$ref": f"#/$defs/{name}"} for name in schema["$defs"]]
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_what_is_written_is_valid(validator: Any) -> None:
    writer = Writer()
    writer.data(b'{"a":1}\nnoise\n\xff\r\n')
    fields = json.dumps({"ch": "mcp", "session": "", "kind": "attempt", "data": {"n": 1}}).encode()
    writer.feed(Kind.EVENT, struct.pack("<I", len(fields)), fields)
    lines = writer.text().splitlines()
    assert len(lines) == 4
    for line in lines:
        validator.validate(json.loads(line))


@pytest.mark.parametrize(
    "line", [{}, {"t": 1}, {"t": -1, "ch": "acp"}, {"t": 1, "ch": "acp", "dir": "up"}]
)
def test_what_is_no_trace_line_is_not(validator: Any, line: dict[str, Any]) -> None:
    assert not validator.is_valid(line)
