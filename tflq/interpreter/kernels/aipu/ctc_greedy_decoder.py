"""CTCGreedyDecoder: the best class of each step, without the blank (docs/aipu.md, 5).

Source: Compass Optimizer, ops/ctcgreedydecoder.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.written import Written
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True, eq=False)
class CtcParams:
    """What one decoder does.

    Attributes:
        merges: whether a class that repeats its predecessor is dropped.
        shape: of the output.
        dtype: of the output.
        unused: fills unused places: the largest value of the output.
        written: for the IR.
    """

    merges: bool
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    unused: int
    written: Written


def lower(node: Node, operands: Operands) -> CtcParams:
    """Take what the node says.

    Inputs: logits [N, T, C], lengths int32[N], 0 or less for all T. Output uint16[N, M, 1, 1].
    """
    output = operands.output()
    merges = node.attributes.boolean("merge_repeated", True)
    written = Written(real_offsets=(0,))
    return CtcParams(merges, output.shape, output.dtype.storage, output.dtype.maximum, written)


def run(params: CtcParams, logits: Array, lengths: Array) -> tuple[Array, ...]:
    """Run the decoder: codes [S, N, T, C], [S, N] -> classes [S, N, M, 1, 1], the lowest index on ties."""
    logits, lengths = together(logits, lengths)
    best, blank = np.argmax(logits, axis=-1), logits.shape[-1] - 1
    found = np.full((len(logits), *params.shape), params.unused, params.dtype)
    for place in np.ndindex(*best.shape[:2]):
        length = int(lengths[place])
        path = _path(best[place][: length if length > 0 else None], blank, params.merges)
        found[place].reshape(-1)[: len(path)] = path[: found[place].size]
    return (found,)


def _path(best: Integers, blank: int, merges: bool) -> Integers:
    kept = best != blank
    if merges:
        kept &= np.append(True, best[1:] != best[:-1])
    path: Integers = best[kept]
    return path
