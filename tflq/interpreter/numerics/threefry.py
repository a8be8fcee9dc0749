"""The Threefry 2x32-20 generator of random numbers.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); TFLite kernels/rng_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.interpreter.numerics.philox import Words

_PARITY = np.uint64(0x1BD11BDA)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS_OF_ROUNDS = 5
_LOW = np.uint64(0xFFFFFFFF)


def threefry_words(key: Sequence[Words | np.uint64], counter: Sequence[Words]) -> Words:
    """Return the pair of each value of the counter: uint64[..., 2], 32 bits of each.

    Args:
        key: its two words.
        counter: its two words, each of shape [...]; the key's words broadcast against them.
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
