"""SKIP_GRAM and LSH_PROJECTION: groups of words, and bits of hashes.

SKIP_GRAM: With include_all_ngrams also shorter groups. Words end at white space; fewer than ngram_size of them yield no
group.

LSH_PROJECTION: Each element of input 0, float32[hashes, bits], is a seed. Its bit is 1 if the sum over the rows of
input 1 of weight * fingerprint(seed's bytes, then the row's bytes), the fingerprint read as int64, is above 0; the sum
is in double, in the order of the rows; without input 2 all weights are 1. Kind "dense" returns the bits, "sparse" for
each hash its bits as a number, the first bit highest, plus its index * 2^bits; both int32.

The rows of strings are equal parts of the tensor's bytes as TFLite keeps them: count, offsets, characters.

Fingerprints are FarmHash's Fingerprint64 (Geoff Pike, Google), farmhashna::Hash64, which the library promises never to
change. All arithmetic is modulo 2^64; rotations turn to the right; `Bytes` are rows uint8[keys, length].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import equal_samples
from tflq.interpreter.registry import Kernel
from tflq.schemas.tflite.packing import pack_strings

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
_Pair = tuple[Words, Words]

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED = 81


def fingerprint64(keys: Bytes) -> Words:
    """Return the fingerprint of each row: uint64[keys]."""
    length = keys.shape[1]
    with np.errstate(over="ignore"):
        if length <= 16:
            return _up_to_16(keys)
        if length <= 32:
            return _up_to_32(keys)
        return _up_to_64(keys) if length <= 64 else _longer(keys)


def _word(keys: Bytes, start: int, count: int = 8) -> Words:
    """Return little-endian words of `count` bytes; a negative start counts from the end."""
    start %= keys.shape[1]
    return np.ascontiguousarray(keys[:, start : start + count]).view(f"<u{count}")[:, 0].astype(np.uint64)


def _rotate(x: Words, bits: int) -> Words:
    return np.asarray((x >> np.uint64(bits)) | (x << np.uint64(64 - bits)))


def _mix_bits(x: Words) -> Words:
    return np.asarray(x ^ (x >> np.uint64(47)))


def _join_words(u: Words, v: Words, factor: np.uint64 | Words) -> Words:
    a = _mix_bits((u ^ v) * factor)
    return _mix_bits((v ^ a) * factor) * factor


def _factor(length: int) -> np.uint64:
    factor: np.uint64 = np.uint64((int(_K2) + 2 * length) % (1 << 64))
    return factor


def _up_to_16(keys: Bytes) -> Words:
    count, length = keys.shape
    factor = _factor(length)
    if length >= 8:
        a, b = _word(keys, 0) + _K2, _word(keys, -8)
        return _join_words(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        return _join_words(np.uint64(length) + (_word(keys, 0, 4) << np.uint64(3)), _word(keys, -4, 4), factor)
    if length == 0:
        return np.full(count, _K2)
    a, b, c = (keys[:, i].astype(np.uint64) for i in (0, length >> 1, length - 1))
    y, z = a + (b << np.uint64(8)), np.uint64(length) + (c << np.uint64(2))
    return np.asarray(_mix_bits(y * _K2 ^ z * _K0) * _K2)


def _up_to_32(keys: Bytes) -> Words:
    factor = _factor(keys.shape[1])
    a, b, c, d = _word(keys, 0) * _K1, _word(keys, 8), _word(keys, -8) * factor, _word(keys, -16) * _K2
    return _join_words(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, factor)


def _up_to_64(keys: Bytes) -> Words:
    factor = _factor(keys.shape[1])
    a, b, c, d = _word(keys, 0) * _K2, _word(keys, 8), _word(keys, -8) * factor, _word(keys, -16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _join_words(y, a + _rotate(b + _K2, 18) + c, factor)
    e, f = _word(keys, 16) * factor, _word(keys, 24)
    g, h = (y + _word(keys, -32)) * factor, (z + _word(keys, -24)) * factor
    return _join_words(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)


def _longer(keys: Bytes) -> Words:
    count, length = keys.shape
    zero = np.zeros(count, np.uint64)
    v, w = (zero, zero), (zero, zero)
    y = np.full(count, _SEED, np.uint64) * _K1 + np.uint64(113)
    z = _mix_bits(y * _K2 + np.uint64(113)) * _K2
    x = np.full(count, _SEED, np.uint64) * _K2 + _word(keys, 0)
    for start in range(0, (length - 1) // 64 * 64, 64):
        x, y, z, v, w = _block(keys[:, start : start + 64], (x, y, z), v, w, _K1, (np.uint64(1), np.uint64(1)))
    factor = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w = (w[0] + np.uint64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _block(keys[:, length - 64 :], (x, y, z), v, w, factor, (np.uint64(9), np.uint64(9)))
    first = _join_words(v[0], w[0], factor) + _mix_bits(y) * _K0 + z
    return _join_words(first, _join_words(v[1], w[1], factor) + x, factor)


def _block(
    block: Bytes,
    state: tuple[Words, Words, Words],
    v: _Pair,
    w: _Pair,
    factor: np.uint64 | Words,
    weights: tuple[np.uint64, np.uint64],
) -> tuple[Words, Words, Words, _Pair, _Pair]:
    """Take in 64 bytes; returns x and z exchanged, as the loop wants them next."""
    x, y, z = state
    x = _rotate(x + y + v[0] + _word(block, 8), 37) * factor
    y = _rotate(y + v[1] + _word(block, 48), 42) * factor
    x = x ^ w[1] * weights[0]
    y = y + v[0] * weights[1] + _word(block, 40)
    z = _rotate(z + w[0], 33) * factor
    new_v = _weak(block[:, :32], v[1] * factor, x + w[0])
    new_w = _weak(block[:, 32:], z + w[1], y + _word(block, 16))
    return z, y, x, new_v, new_w


def _weak(block: Bytes, a: Words, b: Words) -> _Pair:
    w, x, y, z = (_word(block, start) for start in (0, 8, 16, 24))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotate(a, 44) + c


_SPACES = b" \t\n\v\f\r"


@dataclass(frozen=True)
class SkipGram:
    """Which groups to list.

    Attributes:
        size: words of a group.
        skip: words left out between two neighbors, at most.
        shorter: whether smaller groups are listed too.
    """

    size: int
    skip: int
    shorter: bool


def _lower_skip_gram(node: Node, operands: Operands) -> SkipGram:
    """Read the options.

    Raises:
        GraphError: a size below 1, or no string.
        UnsupportedError: other types than strings.
    """
    for tensor in (operands.input(0), operands.output()):
        require_type(tensor, (DType.STRING,))
    size = node.attributes.integer("ngram_size", 0)
    if size < 1 or not operands.input(0).size:
        raise GraphError(
            f"ngram_size is {size} and the input has {operands.input(0).size} strings; 1 or more are needed"
        )
    shorter = node.attributes.boolean("include_all_ngrams", False)
    return SkipGram(size, node.attributes.integer("max_skip_size", 0), shorter)


def _run_skip_gram(params: SkipGram, x: Array) -> tuple[Array, ...]:
    """Run SKIP_GRAM: string[1, *shape] -> string[1, found]."""
    words = _words(bytes(x.reshape(-1)[0]))
    groups = list(_groups(params, words)) if len(words) >= params.size else []
    result = np.empty((1, len(groups)), object)
    result[0, :] = groups
    return (result,)


def _words(text: bytes) -> list[bytes]:
    words, begin = [], 0
    for i in range(1, len(text)):
        if text[i] in _SPACES:
            if i > begin and text[begin] not in _SPACES:
                words.append(text[begin:i])
            begin = i + 1
    return [*words, text[begin:]] if len(text) > begin else words


def _groups(params: SkipGram, words: list[bytes]) -> Iterator[bytes]:
    """Walk the places of the group's words: the deepest one moves on until its skip or the words end."""
    places, depth = [0] * params.size, 1
    while depth >= 0:
        if _may_advance(params, places, depth, len(words)):
            places[depth] += 1
            depth += 1
            if depth < params.size:
                places[depth] = places[depth - 1]
            continue
        if 0 < depth <= params.size and (params.shorter or depth == params.size):
            yield b" ".join(words[place] for place in places[:depth])
        depth -= 1


def _may_advance(params: SkipGram, places: list[int], depth: int, count: int) -> bool:
    if depth >= params.size or places[depth] + 1 >= count:
        return False
    return depth == 0 or places[depth] - places[depth - 1] <= params.skip


MAXIMUM_BITS = 31
"""TFLite takes 32 too, where C leaves the shift of sparse hashes undefined."""


@dataclass(frozen=True)
class LshProjection:
    """Whether each hash becomes one number ("sparse")."""

    sparse: bool


def _lower_lsh_projection(node: Node, operands: Operands) -> LshProjection:
    """Decide the kind.

    Raises:
        GraphError: shapes that do not fit, more than 31 bits, or a kind that is neither sparse nor dense.
        UnsupportedError: types that TFLite does not take.
    """
    seeds, source, weights = operands.input(0), operands.input(1), operands.optional(2)
    require_type(seeds, (DType.FLOAT32,))
    require_type(source, tuple(dtype for dtype in DType if dtype.bits >= 8 or dtype is DType.STRING))
    require_type(operands.output(), (DType.INT32,))
    if len(seeds.shape) != 2 or seeds.shape[1] > MAXIMUM_BITS or not source.shape or not source.shape[0]:
        raise GraphError(f"seeds {seeds.shape} and input {source.shape}: two axes, up to 31 bits, and rows are needed")
    if weights is not None:
        require_type(weights, (DType.FLOAT32,))
        if weights.shape != source.shape[:1]:
            raise GraphError(f"weights {weights.shape} do not fit the rows of an input of shape {source.shape}")
    kind = node.attributes.text("type", "unknown")
    if kind not in ("sparse", "dense"):
        raise GraphError(f"type is {kind}; sparse and dense are allowed")
    return LshProjection(kind == "sparse")


def _run_lsh_projection(
    params: LshProjection, seeds: Array, x: Array, weights: Array | None = None
) -> tuple[Array, ...]:
    """Run LSH_PROJECTION: float32[S or 1, h, b], T[S or 1, n, *row], float32[S or 1, n] -> int32[S, h or h * b]."""
    given = equal_samples(seeds, x) if weights is None else equal_samples(seeds, x, weights)
    rows = [_bits(*(array[s] for array in given)) for s in range(given[0].shape[0])]
    bits = np.stack(rows).reshape(len(rows), *seeds.shape[1:])
    if not params.sparse:
        return (bits.reshape(len(rows), -1).astype(np.int32),)
    hashes, width = seeds.shape[1:]
    places = np.int64(1) << np.arange(width - 1, -1, -1, dtype=np.int64)
    return ((bits @ places + (np.arange(hashes) << width)).astype(np.int32),)


def _bits(seeds: Array, x: Array, weights: Array | None = None) -> NDArray[np.int64]:
    """Return the bit of each seed: int64[hashes * bits]."""
    if x.dtype == object:
        packed = pack_strings(x.astype(np.object_))
        rows = packed[: packed.size // x.shape[0] * x.shape[0]].reshape(x.shape[0], -1)
    else:
        rows = np.ascontiguousarray(x).reshape(x.shape[0], -1).view(np.uint8)
    flat = np.ascontiguousarray(seeds.reshape(-1, 1)).view(np.uint8)
    keys = np.concatenate([np.repeat(flat, rows.shape[0], 0), np.tile(rows, (flat.shape[0], 1))], 1)
    terms = fingerprint64(keys).view(np.int64).astype(np.float64).reshape(flat.shape[0], -1)
    if weights is not None:
        terms = terms * weights.astype(np.float64)
    return (np.add.accumulate(terms, axis=1)[:, -1] > 0).astype(np.int64)


KERNELS = {
    "skip_gram": Kernel(_lower_skip_gram, _run_skip_gram,
        "all groups of ngram_size words of the first string, with at most max_skip_size words left out in between",
        "TFLite kernels/skip_gram.cc", per_sample=True),
    "lsh_projection": Kernel(_lower_lsh_projection, _run_lsh_projection,
        "bits of locality-sensitive hashes", "TFLite kernels/lsh_projection.cc"),
}  # fmt: skip
