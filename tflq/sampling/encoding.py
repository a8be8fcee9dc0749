"""Arrays in the encoding of a model's input: checks of shape, dtype and range, and quantization."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError, SampleError
from tflq.graph import Affine, Array, DType, Tensor
from tflq.sampling.legal import Legal


def fit(array: Array, tensor: Tensor, legal: Legal, where: str) -> Array:
    """Check an array in the encoding of a model's input and return it as dtype[S, *shape].

    Args:
        array: Samples dtype[S, *shape], one sample dtype[*shape], or dtype[S, *shape[1:]] for a batch axis of 1.
        tensor: Input of the model.
        legal: Legal values of the input, checked if the input has a reason for limits.
        where: File name, for messages.

    Raises:
        InputError: Another dtype or shape, NaN, or a value outside the legal range.
    """
    expected = tensor.dtype.storage
    if array.dtype != expected and not (
        array.dtype.kind == expected.kind and array.dtype.newbyteorder("=") == expected
    ):
        raise InputError(
            f"{where}: input '{tensor.name}' needs {tensor.dtype.value}; the array is {array.dtype}"
            + (
                "; --real converts floating-point values with the input's scale"
                if isinstance(tensor.quantization, Affine)
                else ""
            )
        )
    samples = with_samples(array, tensor, where).astype(expected, copy=False)
    if expected.kind in "fc" and tensor.dtype.storage.kind != "u":
        _refuse_nan(samples, tensor, where)
    if tensor.dtype.is_integer:
        _check_range(samples, tensor, legal, where)
    return samples


def quantize_real(array: Array, tensor: Tensor, where: str) -> tuple[Array, int]:
    """Quantize floating-point values as TFLite's QUANTIZE: q = clip(round(x / scale) + zero_point).

    The quotient is float32 and halves round away from zero (TFLite, AffineQuantize in reference/quantize.h).
    For a floating-point input the numbers are only cast to its type.

    Returns:
        Quantized samples dtype[S, *shape], and the number of clipped values.

    Raises:
        InputError: NaN, another kind of numbers, a wrong shape, or an input without a scale.
    """
    if array.dtype.kind not in "fiu":
        raise InputError(f"{where}: input '{tensor.name}' needs numbers; the array is {array.dtype}")
    samples = with_samples(array, tensor, where).astype(np.float32)
    _refuse_nan(samples, tensor, where)
    if tensor.dtype.storage.kind == "f":
        return samples.astype(tensor.dtype.storage), 0
    if not isinstance(tensor.quantization, Affine) or not tensor.dtype.is_integer:
        raise InputError(
            f"{where}: input '{tensor.name}' ({tensor.dtype.value}) has no scale for the conversion of floating-point "
            f"values; pass {tensor.dtype.value} without --real"
        )
    scale, zero_point = tensor.quantization.along(len(tensor.shape))
    ratio = samples / scale.astype(np.float32)
    codes = np.trunc(ratio.astype(np.float64) + np.copysign(0.5, ratio)) + zero_point
    kept = np.clip(codes, tensor.dtype.minimum, tensor.dtype.maximum)
    return kept.astype(tensor.dtype.storage), int(np.count_nonzero(kept != codes))


def with_samples(array: Array, tensor: Tensor, where: str) -> Array:
    """Return the array as [S, *shape].

    Raises:
        InputError: Another shape, or no sample.
    """
    shape = tensor.shape
    if array.ndim == len(shape) + 1 and array.shape[1:] == shape:
        samples = array
    elif array.shape == shape:
        samples = array[None]
    elif array.ndim == len(shape) > 0 and shape[0] == 1 and array.shape[1:] == shape[1:]:
        samples = array[:, None]
    else:
        raise InputError(
            f"{where}: input '{tensor.name}' needs shape {list(shape)}, or several samples as "
            f"[S, {', '.join(map(str, shape))}]; the array has {list(array.shape)}"
        )
    if not samples.shape[0]:
        raise InputError(f"{where}: input '{tensor.name}': the array has no sample")
    return samples


def _refuse_nan(samples: Array, tensor: Tensor, where: str) -> None:
    real: NDArray[np.bool_] = np.isnan(samples)
    if real.any():
        sample = int(np.argmax(real.reshape(len(samples), -1).any(axis=1)))
        raise SampleError(
            f"{where}: input '{tensor.name}' has {int(real.sum())} NaN, the first in sample {sample}; only numbers are "
            f"allowed",
            sample,
        )


def _check_range(samples: Array, tensor: Tensor, legal: Legal, where: str) -> None:
    narrow = tensor.dtype in (DType.INT2, DType.INT4, DType.UINT4)
    if not (narrow or legal.why):
        return
    low, high = (legal.low, legal.high) if legal.why else (tensor.dtype.minimum, tensor.dtype.maximum)
    outside = np.asarray(np.less(samples.astype(np.int64), low) | np.greater(samples.astype(np.int64), high), bool)
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), outside.shape)
        allowed = f"{np.broadcast_to(low, samples.shape)[place]}..{np.broadcast_to(high, samples.shape)[place]}"
        reason = legal.why or f"the type is {tensor.dtype.value}"
        raise SampleError(
            f"{where}: input '{tensor.name}' is {samples[place]} in sample {int(place[0])}; allowed is {allowed}: "
            f"{reason}",
            int(place[0]),
        )
