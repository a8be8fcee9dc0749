"""Options of calls, conditions, loops, hash tables and variables."""

from __future__ import annotations

from tflq.schemas.flatbuffer.declare import enum, int32, string, uint32
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import TensorType


class CallOptions(BuiltinOptions):
    """CALL; the subgraph to call."""

    subgraph: int = uint32()


class IfOptions(BuiltinOptions):
    """IF."""

    then_subgraph_index: int = int32()
    else_subgraph_index: int = int32()


class WhileOptions(BuiltinOptions):
    """WHILE."""

    cond_subgraph_index: int = int32()
    body_subgraph_index: int = int32()


class CallOnceOptions(BuiltinOptions):
    """CALL_ONCE."""

    init_subgraph_index: int = int32()


class HashtableOptions(BuiltinOptions):
    """HASHTABLE; table_id identifies the table across the subgraphs of an interpreter."""

    table_id: int = int32()
    key_dtype: TensorType = enum(TensorType.FLOAT32)
    value_dtype: TensorType = enum(TensorType.FLOAT32)


class HashtableFindOptions(BuiltinOptions):
    """HASHTABLE_FIND: no options."""


class HashtableImportOptions(BuiltinOptions):
    """HASHTABLE_IMPORT: no options."""


class HashtableSizeOptions(BuiltinOptions):
    """HASHTABLE_SIZE: no options."""


class VarHandleOptions(BuiltinOptions):
    """VAR_HANDLE."""

    container: str | None = string()
    shared_name: str | None = string()


class ReadVariableOptions(BuiltinOptions):
    """READ_VARIABLE: no options."""


class AssignVariableOptions(BuiltinOptions):
    """ASSIGN_VARIABLE: no options."""
