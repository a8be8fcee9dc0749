"""Attributes of a node <-> the options table of its operator."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache

import numpy as np

from tflq.errors import FormatError, GraphError
from tflq.graph import Attribute, Attributes, DType, Node
from tflq.schemas import tflite as schema
from tflq.schemas.flatbuffer import fields

_SHARED_OPTIONS = {
    "average_pool_2d": "Pool2DOptions",
    "max_pool_2d": "Pool2DOptions",
    "l2_pool_2d": "Pool2DOptions",
    "mean": "ReducerOptions",
    "sum": "ReducerOptions",
    "reduce_max": "ReducerOptions",
    "reduce_min": "ReducerOptions",
    "reduce_prod": "ReducerOptions",
    "reduce_any": "ReducerOptions",
    "reduce_all": "ReducerOptions",
    "l2_normalization": "L2NormOptions",
    "maximum": "MaximumMinimumOptions",
    "minimum": "MaximumMinimumOptions",
    "unidirectional_sequence_rnn": "SequenceRNNOptions",
    "conv_3d_transpose": "Conv3DOptions",
    "random_uniform": "RandomOptions",
    "random_standard_normal": "RandomOptions",
    "multinomial": "RandomOptions",
}
_WITHOUT_OPTIONS: Mapping[str, Mapping[str, Attribute]] = {"mirror_pad": {"mode": "unknown"}}
"""Where TFLite has a value of its own for options that are not there."""


@cache
def _tables() -> dict[str, type[schema.Table]]:
    members = (*schema.BuiltinOptions.MEMBERS.values(), *schema.BuiltinOptions2.MEMBERS.values())
    return {table.__name__.lower(): table for table in members}


def options_class(operator: str) -> type[schema.Table] | None:
    """Return the options table that belongs to an operator, None where it has none."""
    name = _SHARED_OPTIONS.get(operator, operator.replace("_", "") + "options")
    return _tables().get(name.lower())


def attributes_of(options: schema.Table | None, operator: str) -> Attributes:
    """Return every field of an options table, absent ones at their default.

    Enumerations become their names in lower case, tensor types the names of DType, byte vectors `bytes`, other
    vectors tuples. Where the file gives no options at all, the operator's own have zeros (the first member of an
    enumeration) in place of the schema's defaults, as in TFLite (core/api/flatbuffer_conversions.cc).
    """
    if options is None:
        if operator in _WITHOUT_OPTIONS:
            return Attributes(_WITHOUT_OPTIONS[operator])
        table = options_class(operator)
        return Attributes() if table is None else Attributes({f.name: _zero(f.default) for f in table.FIELDS})
    return Attributes({field.name: _plain(getattr(options, field.name)) for field in options.FIELDS})


def options_of(node: Node, options_name: str | None) -> schema.Table | None:
    """Return the options table for a node's attributes.

    Args:
        node: the node.
        options_name: class name as the file had it, empty for none; None to take the one that the operator has.

    Raises:
        GraphError: an attribute that the table does not have, or a value that does not fit.
    """
    if options_name == "" and node.attributes == attributes_of(None, node.operator):
        return None
    table = _tables().get(options_name.lower()) if options_name else options_class(node.operator)
    if table is None:
        if len(node.attributes):
            names = ", ".join(node.attributes)
            raise GraphError(f"node '{node.name}': operator {node.operator} has no options in TFLite, found {names}")
        return None
    options = table()
    for name, value in node.attributes.items():
        if name not in table.BY_NAME:
            known = ", ".join(table.BY_NAME)
            raise GraphError(f"node '{node.name}': operator {node.operator} has no attribute {name}; it has {known}")
        try:
            setattr(options, name, _stored(value, table.BY_NAME[name]))
        except FormatError as error:
            raise GraphError(f"node '{node.name}': attribute {name}: {error}") from None
    return options


def _zero(default: object) -> Attribute:
    if isinstance(default, IntEnum):
        return _plain(type(default)(0))
    return type(default)() if isinstance(default, (bool, int, float)) else None


def _plain(value: object) -> Attribute:
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.dtype == np.uint8 else tuple(value.tolist())
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)  # type: ignore[return-value]  # names or strings
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise FormatError(f"an options table holds {type(value).__name__}, which has no neutral form")


def _stored(value: Attribute, field: fields.Field) -> object:
    if isinstance(field, fields.EnumVectorField) and isinstance(value, tuple):
        return [_member(str(name), field.members) for name in value]
    if isinstance(field, fields.EnumField) and isinstance(value, str):
        return _member(value, field.members)
    if isinstance(field, fields.VectorField) and isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return value


def _member(name: str, members: type[IntEnum]) -> IntEnum:
    known = {member.name.lower(): member for member in members}
    if name.lower() not in known:
        raise FormatError(f"found '{name}', allowed are {', '.join(known)}")
    return known[name.lower()]


def tensor_type(dtype: DType) -> schema.TensorType:
    """Return the file's number for an element type."""
    return schema.TensorType[dtype.name]
