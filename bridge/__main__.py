"""Entry point: `acp-mcp-bridge` and `python -m bridge`.

Rule: nothing heavy before the guardian is forked, and nothing the daemon does not need on its
path: argparse and the other commands are loaded by `bridge.cli.frame` when there are arguments.
"""

import os
import sys

from bridge.io.descriptors import fill_standard


def main() -> int:
    """Runs a command; gives its exit code (0 done, 1 failed, 2 usage, 130/143 by signal)."""
    if sys.getfilesystemencoding() != "utf-8":
        # Paths, arguments and environments are UTF-8 for us whatever the locale says.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "bridge", *sys.argv[1:]])
    fill_standard()
    arguments = sys.argv[1:]
    if not arguments or arguments == ["stream"]:
        from bridge.cli import stream

        return stream.run_plainly()
    from bridge.cli import frame

    return frame.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
