"""What only a .tflite file knows: kept beside the neutral graph so that writing it again loses nothing."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.schemas import tflite as schema


@dataclass(frozen=True)
class TensorExtra:
    """The rest of a Tensor table.

    Attributes:
        sparsity: how a sparse constant is stored; the tensor's `data` is the dense value. Who replaces `data` drops it.
        sparse_values: the stored values, as bytes.
        variant_tensors: shapes and types of what a variant holds.
        details: a quantisation that has no neutral form.
        external_buffer: index of a constant in another file.
    """

    sparsity: schema.SparsityParameters | None = None
    sparse_values: bytes | None = None
    variant_tensors: list[schema.VariantSubType] | None = None
    details: schema.Table | None = None
    external_buffer: int = 0


@dataclass(frozen=True)
class NodeExtra:
    """The rest of an Operator table.

    Attributes:
        options: class name of the operator's options table; empty where the file gives none.
        mutating_variable_inputs: which inputs the operator writes.
        intermediates: scratch tensors of quantised LSTMs.
        debug_metadata_index: index into the debug metadata; -1 is none.
    """

    options: str = ""
    mutating_variable_inputs: tuple[bool, ...] | None = None
    intermediates: tuple[int, ...] | None = None
    debug_metadata_index: int = -1


@dataclass(frozen=True)
class ModelExtra:
    """The rest of a Model table.

    Attributes:
        metadata_buffer: buffer contents of the deprecated list of metadata buffers.
        external_buffer_groups: names of other files that hold constants.
        external_buffers: places within those files.
        associated_files: a ZIP archive behind the model.
    """

    metadata_buffer: tuple[bytes, ...] = ()
    external_buffer_groups: list[schema.ExternalBufferGroup] | None = None
    external_buffers: list[schema.ExternalBuffer] | None = None
    associated_files: bytes | None = None
