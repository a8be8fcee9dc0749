"""FarmHash's Fingerprint64 of many keys of one length at once.

Source: FarmHash (Geoff Pike, Google), farmhashna::Hash64, which the library promises never to change. All arithmetic is
modulo 2^64; rotations turn to the right; `Bytes` are rows uint8[keys, length].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def _mixed(x: Words) -> Words:
    return np.asarray(x ^ (x >> np.uint64(47)))


def _joined(u: Words, v: Words, factor: np.uint64 | Words) -> Words:
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor


def _factor(length: int) -> np.uint64:
    factor: np.uint64 = np.uint64((int(_K2) + 2 * length) % (1 << 64))
    return factor


def _up_to_16(keys: Bytes) -> Words:
    count, length = keys.shape
    factor = _factor(length)
    if length >= 8:
        a, b = _word(keys, 0) + _K2, _word(keys, -8)
        return _joined(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        return _joined(np.uint64(length) + (_word(keys, 0, 4) << np.uint64(3)), _word(keys, -4, 4), factor)
    if length == 0:
        return np.full(count, _K2)
    a, b, c = (keys[:, i].astype(np.uint64) for i in (0, length >> 1, length - 1))
    y, z = a + (b << np.uint64(8)), np.uint64(length) + (c << np.uint64(2))
    return np.asarray(_mixed(y * _K2 ^ z * _K0) * _K2)


def _up_to_32(keys: Bytes) -> Words:
    factor = _factor(keys.shape[1])
    a, b, c, d = _word(keys, 0) * _K1, _word(keys, 8), _word(keys, -8) * factor, _word(keys, -16) * _K2
    return _joined(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, factor)


def _up_to_64(keys: Bytes) -> Words:
    factor = _factor(keys.shape[1])
    a, b, c, d = _word(keys, 0) * _K2, _word(keys, 8), _word(keys, -8) * factor, _word(keys, -16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _joined(y, a + _rotate(b + _K2, 18) + c, factor)
    e, f = _word(keys, 16) * factor, _word(keys, 24)
    g, h = (y + _word(keys, -32)) * factor, (z + _word(keys, -24)) * factor
    return _joined(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)


def _longer(keys: Bytes) -> Words:
    count, length = keys.shape
    zero = np.zeros(count, np.uint64)
    v, w = (zero, zero), (zero, zero)
    y = np.full(count, _SEED, np.uint64) * _K1 + np.uint64(113)
    z = _mixed(y * _K2 + np.uint64(113)) * _K2
    x = np.full(count, _SEED, np.uint64) * _K2 + _word(keys, 0)
    for start in range(0, (length - 1) // 64 * 64, 64):
        x, y, z, v, w = _block(keys[:, start : start + 64], (x, y, z), v, w, _K1, (np.uint64(1), np.uint64(1)))
    factor = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w = (w[0] + np.uint64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _block(keys[:, length - 64 :], (x, y, z), v, w, factor, (np.uint64(9), np.uint64(9)))
    first = _joined(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _joined(first, _joined(v[1], w[1], factor) + x, factor)


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
