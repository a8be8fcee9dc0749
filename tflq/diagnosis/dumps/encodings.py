"""What the numbers of a dump mean: quantized values of another type, quantized values as floats, or real numbers.

A stored number a of a tensor with scale s and zero point z is

    its own type           q = a
    the other 8-bit type   q = a - 128 for an int8 tensor, a + 128 for a uint8 one
    a wider integer        q = a where all fit the tensor's type; else as the other 8-bit type; else no quantized value.
                           Where both fit (0..127), as the dump's other arrays: level indices 0..255 of OpenVINO's
                           quantizers are of the other type in every tensor
    float, all whole       q = a, if a / s + z lies outside the type or off its steps
    float, multiples of s  q = rint(a / s) + z, if |a / s - rint(a / s)| <= 0.01 (and half of what the format holds)
    float, neither         a real number of another scale: compared as such
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
"""The other 8-bit type of a tensor's, and what must be added to its numbers."""
NEAR = 0.01
"""Steps by which a real number may miss a quantized value: what float32 products lose."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """Numbers ready to be compared.

    Attributes:
        array: of the tensor's type where they are quantized values; else real numbers.
        tensor: how the array stands for real numbers.
        words: how the stored numbers were read.
    """

    array: Array
    tensor: Tensor
    words: str


@dataclass(frozen=True, eq=False)
class Fit:
    """What one array of floats may be.

    Attributes:
        quantized: the quantized values, if they may be those themselves.
        real: the quantized values, if they may be real numbers.
    """

    quantized: Array | None
    real: Array | None

    @property
    def kind(self) -> str | None:
        """What it must be; None where it may be either or is neither."""
        if (self.quantized is None) == (self.real is None):
            return None
        return QUANTIZED if self.real is None else REAL

    @property
    def is_open(self) -> bool:
        """Whether it may be both, and they are not the same."""
        return self.quantized is not None and self.real is not None and not np.array_equal(self.quantized, self.real)


def is_other_type(arrays: Sequence[tuple[Array, Tensor]]) -> bool:
    """Tell whether whole numbers of a dump that fit both 8-bit types are quantized values of the other one.

    So it is where at least one array fits the other type alone, and none its tensor's type alone.
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
    """Return what an array may be; None where only its type decides."""
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
    """Decide for a whole dump whether floats that may be both are quantized values or real numbers.

    Raises:
        InputError: nothing tells.
    """
    kinds = [f.kind for f in fits if f is not None and f.kind is not None]
    quantized, real = kinds.count(QUANTIZED), kinds.count(REAL)
    if quantized != real:
        return QUANTIZED if quantized > real else REAL
    if any(f is not None and f.is_open for f in fits):
        raise InputError(
            f"{where}: its whole numbers in floating point may be quantized values or real numbers, nothing tells; "
            f"say --quantized-values or --real-values"
        )
    return None


def decode(
    array: Array, tensor: Tensor, fit: Fit | None, kind: str | None, is_forced: bool, is_other: bool = False
) -> Decoded:
    """Read an array.

    Args:
        array: [S, ...] as stored.
        tensor: that it is a dump of.
        fit: of `fit_of`.
        kind: what floats are that may be both.
        is_forced: whether the caller says what they are.
        is_other: of `is_other_type`: what integers are that fit both 8-bit types.

    Raises:
        InputError: integers that are no quantized values of the tensor, or floats that are not what the caller says.
    """
    if fit is not None:
        return _decoded_float(array, tensor, fit, kind, is_forced)
    if array.dtype == tensor.dtype.storage:
        return Decoded(array, tensor, "the tensor's own type")
    if array.dtype.kind == "f" and (not tensor.dtype.is_integer or not np.array_equal(array, np.rint(array))):
        return Decoded(array, Tensor(tensor.name, tensor.shape, DType.of(array.dtype)), f"real numbers, {array.dtype}")
    if not tensor.dtype.is_integer:
        return Decoded(array.astype(tensor.dtype.storage), tensor, f"numbers in {array.dtype}")
    found = _shifted(array.astype(np.int64), tensor.dtype, array.dtype, is_other)
    if found is None:
        raise InputError(
            f"holds {array.min()}..{array.max()} in {array.dtype}; quantized values of {tensor.dtype.value} lie in "
            f"{tensor.dtype.minimum}..{tensor.dtype.maximum}: these are accumulators or another tensor"
        )
    return Decoded(found[0], tensor, f"quantized values in {array.dtype}{found[1]}")


def _decoded_float(array: Array, tensor: Tensor, fit: Fit, kind: str | None, is_forced: bool) -> Decoded:
    own = kind if is_forced else fit.kind or kind
    if own != REAL and fit.quantized is not None:
        return Decoded(fit.quantized, tensor, f"quantized values in {array.dtype} (whole numbers, no real ones)")
    if own != QUANTIZED and fit.real is not None:
        return Decoded(fit.real, tensor, f"real numbers, {array.dtype}: multiples of the scale {_scale(tensor)}")
    if is_forced and own == QUANTIZED:
        raise InputError(f"holds no quantized values of {tensor.dtype.value}: {array.min()}..{array.max()}")
    plain = Tensor(tensor.name, tensor.shape, DType.of(array.dtype))
    return Decoded(array, plain, f"real numbers, {array.dtype}, no multiples of the scale {_scale(tensor)}")


def _shifted(
    whole: NDArray[np.int64], dtype: DType, stored: np.dtype[np.generic] | None = None, is_other: bool = False
) -> tuple[Array, str] | None:
    """Return quantized values of a type, and how they follow from whole numbers; None where they do not fit."""
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
