"""Quantization tables of tensors as a file may state them: what they say is read, and all of them survive writing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import FormatError
from tflq.graph import Affine, DType, GraphBuilder, Model
from tflq.schemas import tflite as schema

FLOATS: tuple[list[float] | None, ...] = (None, [], [1.0], [2.0], [1.0, 2.0])


def content(dtype: DType, shape: tuple[int, ...], **stated: Any) -> bytes:
    """Return a file of one constant with this table."""
    b = GraphBuilder("table")
    b.constant("c", np.zeros(shape, dtype.storage), dtype=dtype)
    table = schema.decode_model(model_to_bytes(b.build([])), "table")
    kinds = {"min": np.float32, "max": np.float32, "scale": np.float32, "zero_point": np.int64}
    given = {k: np.array(v, kinds[k]) if k in kinds else v for k, v in stated.items() if v is not None}
    table.subgraphs[0].tensors[0].quantization = schema.QuantizationParameters(**given)
    return bytes(schema.encode_model(table))


def again(model: Model) -> schema.Tensor:
    tensor: schema.Tensor = schema.decode_model(model_to_bytes(model), "again").subgraphs[0].tensors[0]
    return tensor


@pytest.mark.parametrize("low", FLOATS, ids=str)
@pytest.mark.parametrize("high", FLOATS, ids=str)
def test_ranges(low: list[float] | None, high: list[float] | None) -> None:
    """A range has as many ends above as below, and one at least."""
    model = model_from_bytes(content(DType.FLOAT32, (3,), min=low, max=high))
    found = model.main.tensors[0].range
    if low and high and len(low) == len(high):
        assert found is not None
        assert (found.minimum.tolist(), found.maximum.tolist()) == (low, high)
    else:
        assert found is None
    table = again(model).quantization
    for name, values in (("min", low), ("max", high)):
        kept = None if table is None else getattr(table, name)
        assert (None if kept is None else kept.tolist()) == values


@pytest.mark.parametrize(
    ("shape", "axis", "count", "words"),
    [
        ((), 0, 1, ""), ((), 0, 2, "2 scales for a tensor without axes; one is allowed"), ((), 5, 1, ""),
        ((3, 2), 0, 1, ""), ((3, 2), 1, 1, ""), ((3, 2), 0, 3, ""), ((3, 2), 1, 2, ""),
        ((3, 2), 2, 1, r"along axis 2, the shape \(3, 2\) has axes 0\.\.1"),
        ((3, 2), -1, 1, r"along axis -1, the shape \(3, 2\) has axes 0\.\.1"),
        ((3, 2), 1, 3, "3 scales along axis 1, which has 2 channels"),
        ((3, 2), 0, 2, "2 scales along axis 0, which has 3 channels"),
        ((3, 1), 1, 1, ""), ((3, 1), 1, 3, "3 scales along axis 1, which has 1 channels"),
    ],
)  # fmt: skip
def test_axes_of_scales(shape: tuple[int, ...], axis: int, count: int, words: str) -> None:
    scale, zero = [0.5 + i for i in range(count)], [*range(count)]
    data = content(DType.INT8, shape, scale=scale, zero_point=zero, quantized_dimension=axis)
    if words:
        with pytest.raises(FormatError, match=words):
            model_from_bytes(data)
        return
    model = model_from_bytes(data)
    affine = model.main.tensors[0].affine
    assert (affine.scale.tolist(), affine.zero_point.tolist()) == (scale, zero)
    assert affine.axis == (axis if count > 1 or axis else None)
    table = again(model).quantization
    assert (table.scale.tolist(), table.zero_point.tolist(), table.quantized_dimension) == (scale, zero, axis)


@pytest.mark.parametrize(("scales", "zeros", "is_taken"), [(1, 1, True), (1, 2, False), (2, 1, False), (2, 2, True)])
def test_as_many_zero_points_as_scales(scales: int, zeros: int, is_taken: bool) -> None:
    data = content(DType.INT8, (2,), scale=[0.5] * scales, zero_point=[0] * zeros)
    if is_taken:
        assert isinstance(model_from_bytes(data).main.tensors[0].quantization, Affine)
    else:
        with pytest.raises(FormatError, match=f"{scales} scales but {zeros} zero points; the numbers must be equal"):
            model_from_bytes(data)
