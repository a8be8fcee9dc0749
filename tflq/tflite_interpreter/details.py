"""What is known of a tensor, and what LiteRT lets callers choose below the operators."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import TensorExtra
from tflq.errors import OptionError
from tflq.graph import Affine, Blockwise, DType, Graph, Tensor
from tflq.schemas import tflite as schema


class QuantizationParameters(TypedDict):
    """Scales, zero points and axis or size of blocks; empty arrays and 0 where the tensor is not quantized."""

    scales: NDArray[np.generic]
    zero_points: NDArray[np.int32]
    quantized_dimension: int
    block_size: int


class TensorDetails(TypedDict):
    """What is known of a tensor, under TFLite's names."""

    name: str
    index: int
    shape: NDArray[np.int32]
    shape_signature: NDArray[np.int32]
    dtype: type[np.generic]
    quantization: tuple[float, int]
    quantization_parameters: QuantizationParameters
    sparsity_parameters: dict[str, object]


def tensor_details(
    graph: Graph, index: int, shape: tuple[int, ...], compresses_zero_points: bool = False
) -> TensorDetails:
    """Return the details of a tensor whose present shape is `shape`; equal zero points of channels may be one."""
    tensor = graph.tensors[index]
    affine = tensor.quantization if isinstance(tensor.quantization, Affine) else None
    single = affine is not None and affine.scale.size == 1
    return TensorDetails(
        name=tensor.name,
        index=index,
        shape=np.array(shape, np.int32),
        shape_signature=np.array(tensor.shape_signature or shape, np.int32),
        dtype=np.bytes_ if tensor.dtype is DType.STRING else tensor.dtype.storage.type,
        quantization=(float(affine.scale[0]), int(affine.zero_point[0])) if affine and single else (0.0, 0),
        quantization_parameters=_quantization(graph, tensor, compresses_zero_points),
        sparsity_parameters=_sparsity(tensor),
    )


def _quantization(graph: Graph, tensor: Tensor, compresses_zero_points: bool) -> QuantizationParameters:
    found = tensor.quantization
    scales, zero_points = np.zeros(0, np.float32), np.zeros(0, np.int32)
    if isinstance(found, Affine):
        is_one = compresses_zero_points and bool((found.zero_point == found.zero_point[0]).all())
        return QuantizationParameters(
            scales=found.scale.astype(np.float32),
            zero_points=found.zero_point[: 1 if is_one else None].astype(np.int32),
            quantized_dimension=found.axis or 0,
            block_size=0,
        )
    if isinstance(found, Blockwise):
        stated = graph.tensors[found.scales].data
        shifts = graph.tensors[found.zero_points].data if found.zero_points > 0 else None
        return QuantizationParameters(
            scales=scales if stated is None else stated.reshape(-1),
            zero_points=zero_points if shifts is None else shifts.reshape(-1).astype(np.int32),
            quantized_dimension=0,
            block_size=found.block_size,
        )
    return QuantizationParameters(scales=scales, zero_points=zero_points, quantized_dimension=0, block_size=0)


def _sparsity(tensor: Tensor) -> dict[str, object]:
    table = tensor.extra.sparsity if isinstance(tensor.extra, TensorExtra) else None
    if table is None:
        return {}
    return {
        "traversal_order": _int32(table.traversal_order),
        "block_map": _int32(table.block_map),
        "dim_metadata": [_level(level) for level in table.dim_metadata or []],
    }


def _level(level: schema.DimensionMetadata) -> dict[str, object]:
    if level.format is schema.DimensionType.DENSE:
        return {"format": 0, "dense_size": level.dense_size}
    segments, indices = (getattr(v, "values", None) for v in (level.array_segments, level.array_indices))
    return {"format": 1, "array_segments": _int32(segments), "array_indices": _int32(indices)}


def _int32(vector: NDArray[np.integer] | None) -> NDArray[np.int32]:
    return np.zeros(0, np.int32) if vector is None else vector.astype(np.int32)


@unique
class OpResolverType(Enum):
    """Which of its kernels LiteRT uses; tflq has those of BUILTIN_REF alone."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class DelegateError(OptionError, ValueError, OSError):
    """No delegate can be loaded.

    LiteRT raises OSError where the library is missing and ValueError where it refuses: scripts catch the one or the
    other, and go on without a delegate.
    """


class Delegate:
    """A library that would run operators in LiteRT's place; none can be loaded."""

    def __init__(self, library: str, options: Mapping[str, object] | None = None) -> None:  # noqa: ARG002
        """Refuse.

        Raises:
            DelegateError: always.
        """
        raise DelegateError(f"delegate '{library}': tflq loads none, its kernels are its own; leave the delegate away")


def load_delegate(library: str, options: Mapping[str, object] | None = None) -> Delegate:
    """Refuse, as a script expects it where the library is not installed.

    Raises:
        DelegateError: always.
    """
    return Delegate(library, options)
