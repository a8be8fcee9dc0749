"""Averages of windows: integers where the mode is symmetric, float32 where it is not (docs/tpu_mlir.md, 6).

symmetric:  y = sat(up(sum * m, s)), 8-bit m about Sx / (Sy * k)
asymmetric: y = sat(rha(sum * f32(Sx / (Sy * k)) + f32(Zy - (Sx / Sy) * Zx)))

k taps of the full window; with n < k taps inside the image sum * k / n stands for the sum, rounded half away in the
symmetric mode. The manual subtracts the asymmetric offset, which is a sign error; its variant keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, is_manual
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate, shift_half_up
from tflq.interpreter.numerics.fixed_point import round_half_away

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class AverageParams:
    """The numbers of one average.

    Attributes:
        taps: k, of the full window.
        rescale: m and s; None in the asymmetric mode.
        scale: float32 of the asymmetric mode.
        offset: float32 of the asymmetric mode.
        dtype: of the output.
    """

    taps: int
    rescale: Multiplier | None
    scale: np.float32
    offset: np.float32
    dtype: DType

    def apply(self, sums: Array, counts: ArrayLike) -> Array:
        """Return codes of window sums.

        Args:
            sums: exact integers of any numeric type.
            counts: taps inside the image, broadcasting against the sums.
        """
        total = sums.astype(np.float64) * self.taps / np.asarray(counts)
        if self.rescale is not None:
            whole = round_half_away(total).astype(np.int64)
            return saturate(shift_half_up(whole * self.rescale.multiplier[0], self.rescale.shift[0]), self.dtype)
        real = total.astype(np.float32) * self.scale + self.offset
        return saturate(round_half_away(real), self.dtype)


def lower_average(node: Node, operands: Operands, taps: int, is_padded: bool) -> AverageParams:
    """Decide the numbers of an average over `taps` elements.

    Raises:
        UnsupportedError: a ratio of scales without multiplier, or padding beside a zero point other than 0.
    """
    x, output = operands.input(0).affine, operands.output()
    y = output.affine
    ratio = float(x.scale[0]) / float(y.scale[0])
    z_x, z_y = int(x.zero_point[0]), int(y.zero_point[0])
    if is_padded and z_x:
        raise UnsupportedError(
            f"a padded average pool whose input has zero point {z_x}: what the tool does there is not known; use the "
            f"symmetric mode, padding 'valid', or mode=F32 for this layer"
        )
    if not node.attributes.boolean("asymmetric"):
        found = find_multiplier(ratio / taps, MULTIPLIER_BITS)
        return AverageParams(taps, found, np.float32(0), np.float32(0), output.dtype)
    offset = z_y - ratio * z_x
    sign = -1 if is_manual(node) else 1
    return AverageParams(taps, None, np.float32(ratio / taps), np.float32(sign * offset), output.dtype)
