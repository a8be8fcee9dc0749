"""Exit statuses of the command line that are no result of a command."""

from __future__ import annotations

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells count it: 128 + SIGINT."""
