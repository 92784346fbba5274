"""What an agent may ask of its client's machine: ACP version 1, `fs/*` and `terminal/*`.

Shapes only. null stands for absent wherever the ACP schema lets a receiver take it so.
"""

from typing import Annotated

import msgspec

UnsignedInt = Annotated[int, msgspec.Meta(ge=0)]


class ReadTextFile(msgspec.Struct, rename="camel"):
    """`fs/read_text_file`. `line` counts from 1; `limit` is in lines."""

    path: str
    line: UnsignedInt | None = None
    limit: UnsignedInt | None = None


class WriteTextFile(msgspec.Struct, rename="camel"):
    """`fs/write_text_file`."""

    path: str
    content: str


class EnvVariable(msgspec.Struct, rename="camel"):
    name: str
    value: str


class CreateTerminal(msgspec.Struct, rename="camel"):
    """`terminal/create`. `output_byte_limit`: bytes of UTF-8 to keep, the last ones."""

    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    cwd: str | None = None
    output_byte_limit: UnsignedInt | None = None


class TerminalReference(msgspec.Struct, rename="camel"):
    """`terminal/output`, `wait_for_exit`, `kill` and `release`."""

    terminal_id: str
