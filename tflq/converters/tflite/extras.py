"""What only a .tflite file knows: kept beside the neutral graph so that writing it again loses nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import is_same
from tflq.converters.tflite.sparsity import block_of, densify
from tflq.errors import FormatError
from tflq.graph import Tensor
from tflq.schemas import tflite as schema


@dataclass(frozen=True)
class TensorExtra:
    """The rest of a Tensor table.

    Attributes:
        sparsity: how a sparse constant is stored; the tensor's `data` is the dense value.
        sparse_values: the stored values, as bytes; written as long as they still stand for `data`.
        surplus: bytes of the buffer behind the value, which TFLite does not read.
        variant_tensors: shapes and types of what a variant holds.
        quantization: the file's table where the neutral form says less; written as long as the tensor has the
            quantization and range that stand in it.
        external_buffer: index of a constant in another file.
    """

    sparsity: schema.SparsityParameters | None = None
    sparse_values: bytes | None = None
    surplus: bytes = b""
    variant_tensors: list[schema.VariantSubType] | None = None
    quantization: schema.QuantizationParameters | None = None
    external_buffer: int = 0

    def sparse_block(self, tensor: Tensor) -> tuple[int, ...] | None:
        """Return how the tensor's constant is stored, as tflq/graph/sparse.py asks."""
        if self.sparsity is None or not is_still_sparse(tensor):
            return None
        return block_of(self.sparsity, len(tensor.shape))


def is_still_sparse(tensor: Tensor) -> bool:
    """Whether the stored values still stand for the constant: a pass may have replaced it."""
    extra = tensor.extra
    if tensor.data is None or not isinstance(extra, TensorExtra) or extra.sparsity is None:
        return False
    values = np.frombuffer(extra.sparse_values or b"", np.uint8)
    try:
        return is_same(densify(extra.sparsity, values, tensor.shape, tensor.dtype, tensor.name), tensor.data)
    except FormatError:  # the tensor has another shape or type now
        return False


@dataclass(frozen=True)
class NodeExtra:
    """The rest of an Operator table.

    Attributes:
        options: class name of the operator's options table; empty where the file gives none.
        second_options: a table of the second kind beside one of the first, which TFLite's operators do not read.
        mutating_variable_inputs: which inputs the operator writes.
        debug_metadata_index: index into the debug metadata; -1 is none.
    """

    options: str = ""
    second_options: schema.BuiltinOptions2 | None = None
    mutating_variable_inputs: tuple[bool, ...] | None = None
    debug_metadata_index: int = -1


@dataclass(frozen=True)
class ModelExtra:
    """The rest of a Model table.

    Attributes:
        shadowed_metadata: name and bytes of metadata whose name a later entry has too; TFLite reads the later one.
        metadata_buffer: buffer contents of the deprecated list of metadata buffers.
        external_buffer_groups: names of other files that hold constants.
        external_buffers: places within those files.
        trailing_bytes: what follows the model in the file.
    """

    shadowed_metadata: tuple[tuple[str, bytes], ...] = ()
    metadata_buffer: tuple[bytes, ...] = ()
    external_buffer_groups: list[schema.ExternalBufferGroup] | None = None
    external_buffers: list[schema.ExternalBuffer] | None = None
    trailing_bytes: bytes | None = None
