"""Encodings of the numbers in a dump: quantized values of another type, quantized values as floats, or real values.

A stored number a of a tensor with scale s and zero point z denotes

    same type                     q = a
    other 8-bit type              q = a - 128 for an int8 tensor, a + 128 for a uint8 one
    wider integer                 q = a if all fit the tensor's type; else as the other 8-bit type; else no quantized
                                  value. If both fit (0..127), the dump's other arrays decide: level indices 0..255 of
                                  OpenVINO's quantizers are of the other type in every tensor
    float, all integers           q = a, if a / s + z is outside the type or off its steps
    float, multiples of s         q = rint(a / s) + z, if |a / s - rint(a / s)| <= 0.01 (plus half of the format's step)
    float, neither of the two     a floating-point value of another scale, compared as such
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.dumps.wanted import QUANTIZED, REAL
from tflq.errors import InputError
from tflq.graph import Affine, Array, DType, Tensor

_OTHER: Mapping[DType, tuple[type[np.generic], int]] = {DType.INT8: (np.uint8, -128), DType.UINT8: (np.int8, 128)}
"""The other 8-bit type for a tensor's type, and the number to add to its values."""
NEAR = 0.01
"""Distance in steps up to which a floating-point value is a quantized one: the error of float32 products."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """Numbers ready to be compared.

    Attributes:
        array: Quantized values of the tensor's type, or floating-point values.
        tensor: Tensor with the encoding of the array.
        words: Description of how the stored numbers were read.
    """

    array: Array
    tensor: Tensor
    words: str


@dataclass(frozen=True, eq=False)
class Fit:
    """Possible readings of one array of floats.

    Attributes:
        quantized: The quantized values if the floats can be read as such.
        real: The quantized values if the floats can be read as dequantized values.
    """

    quantized: Array | None
    real: Array | None

    @property
    def kind(self) -> str | None:
        """The only possible reading; None if both or none are possible."""
        if (self.quantized is None) == (self.real is None):
            return None
        return QUANTIZED if self.real is None else REAL

    @property
    def is_open(self) -> bool:
        """Whether it may be both, and they are not the same."""
        return self.quantized is not None and self.real is not None and not np.array_equal(self.quantized, self.real)


def is_other_type(arrays: Sequence[tuple[Array, Tensor]]) -> bool:
    """Tell if integers of a dump that fit both 8-bit types are quantized values of the other type.

    This applies if at least one array fits only the other type, and none fits only its tensor's type.
    """
    own = other = False
    for array, tensor in arrays:
        shift = _OTHER.get(tensor.dtype)
        if shift is None or array.dtype.kind not in "iu" or array.dtype.itemsize == 1:
            continue
        whole = array.astype(np.int64)
        fits, moved = (_in_range(w, tensor.dtype) is not None for w in (whole, whole + shift[1]))
        own |= fits and not moved
        other |= moved and not fits
    return other and not own


def fit_of(array: Array, tensor: Tensor, step: float) -> Fit | None:
    """Return the possible readings of an array; None if its type decides."""
    if array.dtype.kind != "f" or not tensor.dtype.is_integer or not isinstance(tensor.quantization, Affine):
        return None
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return Fit(None, None)
    whole = wide.astype(np.int64) if (wide == np.rint(wide)).all() and np.abs(wide).max(initial=0) < 1 << 31 else None
    quantized = None if whole is None else _shifted(whole, tensor.dtype)
    scale, zero_point = _along(tensor, array.ndim)
    ratio = wide / scale
    near = np.rint(ratio)
    reach = NEAR + step / 2 / np.min(np.asarray(tensor.quantization.scale, np.float64))
    is_real = bool((np.abs(ratio - near) <= reach).all())
    real = _in_range((near + zero_point).astype(np.int64), tensor.dtype) if is_real else None
    return Fit(None if quantized is None else quantized[0], real)


def kind_of_floats(where: str, fits: Sequence[Fit | None]) -> str | None:
    """Decide for a whole dump if ambiguous floats are quantized or dequantized values.

    Raises:
        InputError: the dump does not decide it.
    """
    kinds = [f.kind for f in fits if f is not None and f.kind is not None]
    quantized, real = kinds.count(QUANTIZED), kinds.count(REAL)
    if quantized != real:
        return QUANTIZED if quantized > real else REAL
    if any(f is not None and f.is_open for f in fits):
        raise InputError(
            f"{where}: its integers in floating point may be quantized or real values; specify --quantized-values or "
            f"--real-values"
        )
    return None


def decode(
    array: Array, tensor: Tensor, fit: Fit | None, kind: str | None, is_forced: bool, is_other: bool = False
) -> Decoded:
    """Read an array.

    Args:
        array: [S, ...] as stored.
        tensor: Tensor that the array is a dump of.
        fit: Result of `fit_of`.
        kind: Reading of ambiguous floats.
        is_forced: True if the caller specified `kind`.
        is_other: Result of `is_other_type`, for integers that fit both 8-bit types.

    Raises:
        InputError: integers that are no quantized values of the tensor, or floats that contradict the caller's `kind`.
    """
    if fit is not None:
        return _decoded_float(array, tensor, fit, kind, is_forced)
    if array.dtype == tensor.dtype.storage:
        return Decoded(array, tensor, "the tensor's own type")
    if array.dtype.kind == "f" and (not tensor.dtype.is_integer or not np.array_equal(array, np.rint(array))):
        return Decoded(array, Tensor(tensor.name, tensor.shape, DType.of(array.dtype)), f"real numbers, {array.dtype}")
    if not tensor.dtype.is_integer:
        return Decoded(array.astype(tensor.dtype.storage), tensor, f"numbers in {array.dtype}")
    shifted = _shifted(array.astype(np.int64), tensor.dtype, array.dtype, is_other)
    if shifted is None:
        raise InputError(
            f"holds {array.min()}..{array.max()} in {array.dtype}; quantized values of {tensor.dtype.value} lie in "
            f"{tensor.dtype.minimum}..{tensor.dtype.maximum}: these are accumulators or another tensor"
        )
    return Decoded(shifted[0], tensor, f"quantized values in {array.dtype}{shifted[1]}")


def _decoded_float(array: Array, tensor: Tensor, fit: Fit, kind: str | None, is_forced: bool) -> Decoded:
    own = kind if is_forced else fit.kind or kind
    if own != REAL and fit.quantized is not None:
        return Decoded(fit.quantized, tensor, f"quantized values in {array.dtype} (integers, not real values)")
    if own != QUANTIZED and fit.real is not None:
        return Decoded(fit.real, tensor, f"real numbers, {array.dtype}: multiples of the scale {_scale(tensor)}")
    if is_forced and own == QUANTIZED:
        raise InputError(f"contains no quantized values of {tensor.dtype.value}: {array.min()}..{array.max()}")
    plain = Tensor(tensor.name, tensor.shape, DType.of(array.dtype))
    return Decoded(array, plain, f"real numbers, {array.dtype}, no multiples of the scale {_scale(tensor)}")


def _shifted(
    whole: NDArray[np.int64], dtype: DType, stored: np.dtype[np.generic] | None = None, is_other: bool = False
) -> tuple[Array, str] | None:
    """Return quantized values of a type, and the formula that gives them from integers; None if they do not fit."""
    kind, offset = _OTHER.get(dtype, (None, 0))
    plain = None if kind is not None and stored == kind else _in_range(whole, dtype)
    moved = None if kind is None else _in_range(whole + offset, dtype)
    if moved is not None and (plain is None or is_other):
        return moved, f": q = a {'-' if offset < 0 else '+'} 128"
    return None if plain is None else (plain, "")


def _in_range(whole: NDArray[np.int64], dtype: DType) -> Array | None:
    if whole.size and (whole.min() < dtype.minimum or whole.max() > dtype.maximum):
        return None
    return whole.astype(dtype.storage)


def _along(tensor: Tensor, rank: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    scale, zero_point = tensor.affine.along(len(tensor.shape) if tensor.affine.is_per_axis else rank)
    return np.asarray(scale, np.float64), np.asarray(zero_point, np.int64)


def _scale(tensor: Tensor) -> str:
    scale = tensor.affine.scale
    return f"{float(scale.reshape(-1)[0]):.6g}" + (" ..." if scale.size > 1 else "")
