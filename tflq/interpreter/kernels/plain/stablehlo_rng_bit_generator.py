"""STABLEHLO_RNG_BIT_GENERATOR: random words from a state, and the state behind them.

The state is a list of 64-bit words, each two 32-bit ones, the lower first: (key, counter) of Threefry, which gives two
32-bit words for each value of its counter; (key, counter) or (key, counter, upper counter) of Philox, which gives four,
and takes the key for an upper counter that is not there. Only the lower 64 bits of the counter count up. An output of
64 bits takes two words, the lower first. Words that do not fill the last group are dropped.

Source: TFLite kernels/rng_bit_generator.cc, rng_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.random_words import Words, philox_words, threefry_words
from tflq.interpreter.operands.checks import require_type

TYPES = (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64)
_STATES = {"threefry": (2,), "philox": (2, 3), "default": (2, 3)}
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class RandomBits:
    """What the generator needs.

    Attributes:
        is_threefry: whether it is Threefry; else Philox.
        shape: of the words.
        dtype: of the words.
    """

    is_threefry: bool
    shape: tuple[int, ...]
    dtype: DType

    @property
    def group(self) -> int:
        """32-bit words for each value of the counter."""
        return 2 if self.is_threefry else 4

    @property
    def groups(self) -> int:
        """Values of the counter that are used up."""
        return -(-prod(self.shape) * (self.dtype.bits // 32) // self.group)


def lower(node: Node, operands: Operands) -> RandomBits:
    """Check the operands: the state uint64[2 or 3], a state of the same shape, and the words.

    Raises:
        UnsupportedError: other types, or an algorithm that TFLite does not know.
        GraphError: a state of another shape than the algorithm has.
    """
    state, after, words = operands.input(0), operands.output(0), operands.output(1)
    require_type(state, (DType.UINT64,))
    require_type(after, (DType.UINT64,))
    require_type(words, TYPES)
    algorithm = node.attributes.text("algorithm", "default")
    if algorithm not in _STATES:
        raise UnsupportedError(f"the algorithm is {algorithm}; there are {', '.join(_STATES)}")
    if len(state.shape) != 1 or state.shape != after.shape or state.shape[0] not in _STATES[algorithm]:
        raise GraphError(
            f"the state has shape {state.shape} before and {after.shape} after; {algorithm} needs a vector of "
            f"{' or '.join(map(str, _STATES[algorithm]))} on both sides"
        )
    return RandomBits(algorithm == "threefry", words.shape, words.dtype)


def run(params: RandomBits, state: Array) -> tuple[Array, ...]:
    """Run it: uint64[S or 1, 2 or 3] -> the new state, and T[S or 1, *shape]."""
    before = state.astype(np.uint64)
    steps = np.arange(params.groups, dtype=np.uint64)
    words = _words(params, before, before[:, 1:2] + steps)
    after = before.copy()
    after[:, 1] += np.uint64(params.groups)
    bits = words.reshape(len(before), -1).astype("<u4")[:, : prod(params.shape) * (params.dtype.bits // 32)]
    drawn = np.ascontiguousarray(bits).view(params.dtype.storage)
    return after, drawn.reshape(len(before), *params.shape)


def _words(params: RandomBits, state: Words, counter: Words) -> Words:
    """Return 32-bit words uint64[S, groups, 2 or 4] of the values of a counter uint64[S, groups]."""
    key = [state[:, :1] & _LOW, state[:, :1] >> _HALF]
    lower_half = [counter & _LOW, counter >> _HALF]
    if params.is_threefry:
        return threefry_words(key, lower_half)
    upper = np.broadcast_to(state[:, 2:] if state.shape[1] > 2 else state[:, :1], counter.shape)
    return philox_words(key, [*lower_half, upper & _LOW, upper >> _HALF])
