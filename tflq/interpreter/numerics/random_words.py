"""Generators of random numbers: Philox 4x32-10 and Threefry 2x32-20, and Philox's numbers as reals.

The Philox 4x32-10 generator of random numbers, and its numbers as reals, as TensorFlow and TFLite use it.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); TensorFlow tsl/lib/random/philox_random.h
and random_distributions_utils.h.

The Threefry 2x32-20 generator of random numbers.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); TFLite kernels/rng_util.cc.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Attributes

Words = NDArray[np.uint64]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MASK = (1 << 128) - 1


def seeds_of(attributes: Attributes) -> tuple[int, int]:
    """Return the two seeds of a node, cut to int32 as in TFLite; two zeros mean new ones from the operating system."""
    first, second = (_cut(attributes.integer(name, 0)) for name in ("seed", "seed2"))
    if first == 0 and second == 0:
        first, second = secrets.randbits(64), secrets.randbits(64)
    return first % (1 << 64), second % (1 << 64)


def _cut(seed: int) -> int:
    return (seed + (1 << 31)) % (1 << 32) - (1 << 31)


def philox(seeds: tuple[int, int], position: int, count: int) -> Words:
    """Return `count` groups of four 32-bit words, uint64[count, 4].

    Args:
        seeds: the first is the key, the second the upper half of the counter.
        position: groups that were drawn before.
        count: number of groups.
    """
    start = ((seeds[1] << 64) + position) & _MASK
    places = [(start + i) & _MASK for i in range(count)]
    counter = [np.array([(p >> shift) & 0xFFFFFFFF for p in places], np.uint64) for shift in (0, 32, 64, 96)]
    return philox_words([np.uint64(seeds[0] & 0xFFFFFFFF), np.uint64(seeds[0] >> 32)], counter)


def philox_words(key: Sequence[Words | np.uint64], counter: Sequence[Words]) -> Words:
    """Return the group of each value of the counter: uint64[..., 4], 32 bits of each.

    Args:
        key: Key of two words.
        counter: Counter of four words, each of shape [...]; the key's words broadcast against them.
    """
    for _ in range(_ROUNDS):
        products = [np.uint64(m) * counter[i] for m, i in zip(_MULTIPLIERS, (0, 2), strict=True)]
        high, low = [p >> _HALF for p in products], [p & _LOW for p in products]
        counter = [high[1] ^ counter[1] ^ key[0], low[1], high[0] ^ counter[3] ^ key[1], low[0]]
        key = [(k + np.uint64(w)) & _LOW for k, w in zip(key, _WEYL, strict=True)]
    return np.stack(counter, axis=-1)


def uniform_floats(words: Words) -> NDArray[np.float32]:
    """Return float32 in [0, 1): the lowest 23 bits of each word as the fraction of a number from 1 to 2, less 1."""
    bits = ((words & np.uint64(0x7FFFFF)) | np.uint64(127 << 23)).astype(np.uint32)
    return np.asarray(bits.view(np.float32) - np.float32(1), np.float32)


def uniform_doubles(first: Words, second: Words) -> NDArray[np.float64]:
    """Return float64 in [0, 1) from 20 bits of the first and 32 of the second word."""
    bits = ((first & np.uint64(0xFFFFF)) << _HALF) | second | np.uint64(1023 << 52)
    return np.asarray(bits.view(np.float64) - 1.0, np.float64)


_PARITY = np.uint64(0x1BD11BDA)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS_OF_ROUNDS = 5


def threefry_words(key: Sequence[Words | np.uint64], counter: Sequence[Words]) -> Words:
    """Return the pair of each value of the counter: uint64[..., 2], 32 bits of each.

    Args:
        key: Key of two words.
        counter: Counter of two words, each of shape [...]; the key's words broadcast against them.
    """
    keys = [key[0], key[1], key[0] ^ key[1] ^ _PARITY]
    first, second = (counter[0] + keys[0]) & _LOW, (counter[1] + keys[1]) & _LOW
    for group in range(_GROUPS_OF_ROUNDS):
        for bits in _ROTATIONS[group % 2]:
            first = (first + second) & _LOW
            second = first ^ (((second << np.uint64(bits)) | (second >> np.uint64(32 - bits))) & _LOW)
        first = (first + keys[(group + 1) % 3]) & _LOW
        second = (second + keys[(group + 2) % 3] + np.uint64(group + 1)) & _LOW
    return np.stack([first, second], axis=-1)
