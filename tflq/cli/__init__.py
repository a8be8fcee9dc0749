"""The command line. click and rich are imported here and nowhere else; each command loads when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tflq.cli.status import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 where a check failed, 2 for bad use or input.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    try:
        from tflq.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:  # while modules are imported, or while an interrupted command ends
        sys.stderr.write("tflq: interrupted\n")
        return INTERRUPTED
