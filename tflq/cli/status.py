"""Exit statuses of the command line that are not 0, 1 or 2."""

from __future__ import annotations

INTERRUPTED = 130
"""Status after Ctrl-C, as shells count it: 128 + SIGINT."""
