"""Exit statuses of signals, as shells count them: 128 + number of the signal."""

from __future__ import annotations

INTERRUPTED = 130
PIPE_CLOSED = 141
