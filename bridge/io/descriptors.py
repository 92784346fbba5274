"""Descriptors 0, 1 and 2, where whoever started us left one closed.

Rule: they are filled before anything else is opened, since the next pipe would else be our stdin.
Called by `bridge.__main__`, first of all; hence nothing is imported here.
"""

import os


def fill_standard() -> None:
    """Opens /dev/null in place of what is closed: its end is the end of input, its output none."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is this one.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(fd, True)
