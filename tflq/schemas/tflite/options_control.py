"""Options of calls, conditions, loops, hash tables and variables."""

from __future__ import annotations

from tflq.schemas.flatbuffer.declare import enum, int32, string, uint32
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import TensorType


class CallOptions(BuiltinOptions, member=16):
    """CALL; the subgraph to call."""

    subgraph: int = uint32()


class IfOptions(BuiltinOptions, member=92):
    """IF."""

    then_subgraph_index: int = int32()
    else_subgraph_index: int = int32()


class WhileOptions(BuiltinOptions, member=93):
    """WHILE."""

    cond_subgraph_index: int = int32()
    body_subgraph_index: int = int32()


class CallOnceOptions(BuiltinOptions, member=103):
    """CALL_ONCE."""

    init_subgraph_index: int = int32()


class HashtableOptions(BuiltinOptions, member=107):
    """HASHTABLE; table_id identifies the table across the subgraphs of an interpreter."""

    table_id: int = int32()
    key_dtype: TensorType = enum(TensorType.FLOAT32)
    value_dtype: TensorType = enum(TensorType.FLOAT32)


class HashtableFindOptions(BuiltinOptions, member=108):
    """HASHTABLE_FIND: no options."""


class HashtableImportOptions(BuiltinOptions, member=109):
    """HASHTABLE_IMPORT: no options."""


class HashtableSizeOptions(BuiltinOptions, member=110):
    """HASHTABLE_SIZE: no options."""


class VarHandleOptions(BuiltinOptions, member=111):
    """VAR_HANDLE."""

    container: str | None = string()
    shared_name: str | None = string()


class ReadVariableOptions(BuiltinOptions, member=112):
    """READ_VARIABLE: no options."""


class AssignVariableOptions(BuiltinOptions, member=113):
    """ASSIGN_VARIABLE: no options."""
