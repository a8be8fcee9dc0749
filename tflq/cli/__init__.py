"""The command line. Only this package imports click and rich; each command loads when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tflq.cli.status import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 if a check failed, 2 for invalid usage or input.

    Args:
        arguments: Arguments without the program's name (default: the arguments of the process).
    """
    try:
        from tflq.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:  # while modules are imported, or while an interrupted command ends
        sys.stderr.write("tflq: interrupted\n")
        return INTERRUPTED
