"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL and STABLEHLO_RNG_BIT_GENERATOR: numbers drawn.

The first three take the Philox generator. Numbers are float32[1, *shape] from groups of four words. Each invocation
continues after the last one, at a whole group.

Normal numbers follow Box and Muller's method: of two uniform numbers, u1 at least 1e-7, r = f32(sqrt(-2 log u1)), angle
= f32(2 pi u2); the results are r sin(angle) and r cos(angle). log, sin and cos are rounded once; TFLite's are the
host's.

MULTINOMIAL draws classes by their logits, float32 [B, C] -> int32 or int64 [B, N]: cumulative sums of
exp(logit - largest) in float64, classes that are not finite omitted; a class is the first one with a sum above u *
total, u from two words of the generator. One invocation uses up 512 groups for every four samples.

STABLEHLO_RNG_BIT_GENERATOR: The state is a list of 64-bit words, each two 32-bit ones, the lower first: (key, counter)
of Threefry, which returns two 32-bit words for each value of its counter; (key, counter) or (key, counter, upper
counter) of Philox, which returns four, and uses the key as a missing upper counter. Only the lower 64 bits of the
counter count up. An output of 64 bits takes two words, the lower first. Words that do not fill the last group are
dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.random_words import (
    Words,
    philox,
    philox_words,
    seeds_of,
    threefry_words,
    uniform_doubles,
    uniform_floats,
)
from tflq.interpreter.numerics.transcendental import cos, log, sin
from tflq.interpreter.operands.checks import require_result, require_type
from tflq.interpreter.registry import Kernel

GROUP = 4


@dataclass(frozen=True)
class RandomNumbers:
    """The params of a float generator.

    Attributes:
        shape: Shape of the output.
        seeds: both.
    """

    shape: tuple[int, ...]
    seeds: tuple[int, int]


def _lower(node: Node, operands: Operands) -> RandomNumbers:
    """Check the operands: the shape int32[rank], and a float32 output.

    Raises:
        UnsupportedError: other types.
        GraphError: a shape of another rank than 1, or a negative size.
        RuntimeOperandError: the shape is computed at run time.
    """
    require_type(operands.output(), (DType.FLOAT32,))
    require_type(operands.input(0), (DType.INT32,))
    sizes = operands.constant(0)
    if sizes.ndim != 1 or (sizes.astype(np.int64) < 0).any():
        raise GraphError(f"the shape is {sizes.tolist()}; it is a list of sizes of 0 or more")
    shape = tuple(int(n) for n in sizes.astype(np.int64))
    require_result(shape, DType.FLOAT32)
    return RandomNumbers(shape, seeds_of(node.attributes))


def _run(
    params: RandomNumbers,
    shape: Array,  # noqa: ARG001
    state: Array | None = None,
    *,
    distribution: Callable[[NDArray[np.float32]], NDArray[np.float32]],
) -> tuple[Array, ...]:
    """Return float32[1, *shape] and the new state int64[1, 1]."""
    position = 0 if state is None else int(state.astype(np.int64)[0, 0])
    count = int(np.prod(params.shape, dtype=np.int64))
    groups = -(-count // GROUP)
    drawn = distribution(uniform_floats(philox(params.seeds, position, groups)))
    return drawn.reshape(-1)[:count].reshape(1, *params.shape), np.array([[position + groups]], np.int64)


def _normal(uniform: NDArray[np.float32]) -> NDArray[np.float32]:
    first, second = uniform.reshape(-1, 2).T
    radius = np.sqrt(np.float32(-2) * log(np.maximum(first, np.float32(1e-7))))
    angle = (2 * np.pi * second.astype(np.float64)).astype(np.float32)
    return np.stack([sin(angle) * radius, cos(angle) * radius], axis=-1)


_RESERVED = 2 * 256


@dataclass(frozen=True)
class Multinomial:
    """The params of MULTINOMIAL.

    Attributes:
        count: N.
        dtype: Storage type of the output.
        seeds: both.
    """

    count: int
    dtype: DType
    seeds: tuple[int, int]


def _lower_multinomial(node: Node, operands: Operands) -> Multinomial:
    """Check the operands.

    Raises:
        UnsupportedError: other types.
        GraphError: logits that are no matrix, or a count that is no number of 0 or more.
        RuntimeOperandError: the count is computed at run time.
    """
    logits, count = operands.input(0), operands.input(1)
    require_type(logits, (DType.FLOAT32,))
    require_type(count, (DType.INT32,))
    dtype = require_type(operands.output(), (DType.INT32, DType.INT64))
    samples = operands.constant(1).astype(np.int64)
    if len(logits.shape) != 2 or logits.shape[1] < 1 or samples.shape or samples < 0:
        raise GraphError(f"logits {logits.shape} and a count of {samples.tolist()}; a matrix and a number are needed")
    require_result((logits.shape[0], int(samples)), dtype)
    return Multinomial(int(samples), dtype, seeds_of(node.attributes))


def _run_multinomial(
    params: Multinomial,
    logits: Array,
    count: Array,  # noqa: ARG001
    state: Array | None = None,
) -> tuple[Array, ...]:
    """Run it: float32[1, B, C] -> int[1, B, N] and the new state."""
    position = 0 if state is None else int(state.astype(np.int64)[0, 0])
    rows = cast(NDArray[np.float32], logits)[0]
    drawn = params.count * len(rows)
    words: Words = philox(params.seeds, position, -(-drawn // 2)).reshape(-1, 2)[:drawn]
    u = uniform_doubles(np.ascontiguousarray(words[:, 0]), words[:, 1]).reshape(len(rows), params.count)
    result = np.empty((1, len(rows), params.count), params.dtype.storage)
    for b, row in enumerate(rows):
        finite = np.isfinite(row)
        largest = row[finite].max(initial=np.finfo(np.float32).min).astype(np.float64)
        odds = np.where(finite, np.exp(np.where(finite, row, 0).astype(np.float64) - largest), 0.0)
        sums = np.add.accumulate(odds)
        result[0, b] = np.searchsorted(sums, u[b] * sums[-1], side="right")
    used = len(rows) * -(-params.count // 4) * 4 * _RESERVED
    return result, np.array([[position + used]], np.int64)


TYPES = (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64)
_STATES = {"threefry": (2,), "philox": (2, 3), "default": (2, 3)}
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class RandomBits:
    """The params of STABLEHLO_RNG_BIT_GENERATOR.

    Attributes:
        is_threefry: whether it is Threefry; else Philox.
        shape: Shape of the words.
        dtype: Storage type of the words.
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


def _lower_stablehlo_rng_bit_generator(node: Node, operands: Operands) -> RandomBits:
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


def _run_stablehlo_rng_bit_generator(params: RandomBits, state: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "random_uniform": Kernel(_lower, partial(_run, distribution=lambda uniform: uniform),
        "float32 in [0, 1)", "TFLite kernels/random_ops.cc (GenerateRandomUniformNumbers)", stateful=True),
    "random_standard_normal": Kernel(_lower, partial(_run, distribution=_normal),
        "float32 by Box and Muller's method",
        "TFLite kernels/random_ops.cc, TensorFlow tsl/lib/random/random_distributions_utils.h (BoxMullerFloat)",
        stateful=True),
    "multinomial": Kernel(_lower_multinomial, _run_multinomial,
        "draws classes by their logits, float32 [B, C] -> int32 or int64 [B, N]",
        "TFLite kernels/random_ops.cc (GenerateMultinomialNumbers)", stateful=True),
    "stablehlo_rng_bit_generator": Kernel(_lower_stablehlo_rng_bit_generator, _run_stablehlo_rng_bit_generator,
        "random words from a state, and the state behind them", "TFLite kernels/rng_bit_generator.cc, rng_util.cc"),
}  # fmt: skip
