"""Every rule, by the operator's name."""

from __future__ import annotations

from tflq.converters.exchange import elementwise, moves, reductions, sequences, windows
from tflq.converters.exchange.emitter import Rule

RULES: dict[str, Rule] = {**elementwise.RULES, **moves.RULES, **reductions.RULES, **sequences.RULES, **windows.RULES}
