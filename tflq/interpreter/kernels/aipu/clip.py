"""Activation CLIP: limits on a scale 256 times finer at 8 bits, two roundings (docs/aipu.md, 5).

u = clamp(RNE((x + zp_x) * M * 2^-(N - 8)), cmin, cmax), c = RNE(limit * 256 * s_y); y = clamp(RNE(u / 256) - zp_y).

Source: Compass Optimizer, ops/clip.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import is_stated, multiplier_of
from tflq.interpreter.kernels.aipu.written import ADDITIVE, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN

EXTRA_BITS = 8


@dataclass(frozen=True, eq=False)
class ClipParams:
    """The integers of one clip: offsets, M and N as the IR has them, limits, and the extra bits."""

    input_offset: int
    rescale: Multiplier
    limits: tuple[int, int]
    extra_bits: int
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        finer = Multiplier(self.rescale.m, self.rescale.n - self.extra_bits)
        u = np.clip(finer.apply(x.astype(np.int64) + self.input_offset), *self.limits)
        y = np.rint(u * 2.0**-self.extra_bits) - self.offset
        codes: Array = np.clip(y, self.minimum, self.maximum).astype(self.dtype)
        return codes


def lower(node: Node, operands: Operands) -> ClipParams:
    """Decide M, N of s_y / s_x and the limits."""
    x, output = operands.input(0), operands.output()
    bits = bits_of(output)
    extra = EXTRA_BITS if bits <= EXTRA_BITS else 0
    low, high = clip_limits(node, output)
    found = multiplier_of(node, scale_of(output) / scale_of(x), bits)
    written = Written(
        keys=rescale_keys(ADDITIVE, found, type_of_multiplier(bits)), changed={"clip_min": low, "clip_max": high}
    )
    limits = code_limits(output)
    return ClipParams(
        offset_of(x), found, (low, high), extra, offset_of(output), *limits, output.dtype.storage, written
    )


def clip_limits(node: Node, output: Tensor) -> tuple[int, int]:
    """Return the limits as integers at 256 s_y, at s_y from 16 bits on; a quantised IR has them already."""
    if is_stated(node):
        return node.attributes.integer("clip_min"), node.attributes.integer("clip_max")
    given = [np.float32(node.attributes.real(key)) for key in ("clip_min", "clip_max")]
    extra = EXTRA_BITS if bits_of(output) <= EXTRA_BITS else 0
    fine = np.float32(scale_of(output) * np.float32(1 << extra))
    low, high = (int(np.clip(np.rint(np.float32(fine * limit)), INT32_MIN, INT32_MAX)) for limit in given)
    return low, high
