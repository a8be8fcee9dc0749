"""Random tables of any declared class: every field absent, at its default, empty or full."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import strategies as st

from tflq.schemas.flatbuffer import fields
from tflq.schemas.flatbuffer.scalars import BOOL, FLOAT32, FLOAT64, Scalar
from tflq.schemas.flatbuffer.table import Table


def scalars(scalar: Scalar) -> st.SearchStrategy:
    if scalar is BOOL:
        return st.booleans()
    if scalar in (FLOAT32, FLOAT64):
        return st.floats(width=8 * scalar.size).map(quiet)
    return st.integers(scalar.low, scalar.high)


def quiet(value: float) -> float:
    """Make a signaling NaN quiet: Python's own float conversion from 32 bits does so too."""
    return struct.unpack("<d", struct.pack("<d", value))[0] if value == value else float("nan")


def values(field: fields.Field, depth: int) -> st.SearchStrategy:
    """Draw a value for a field; None is absent."""
    text = st.text(max_size=6)
    if isinstance(field, fields.EnumField):
        return st.sampled_from(list(field.members))
    if isinstance(field, fields.ScalarField):
        return scalars(field.type) | st.just(field.default)
    if isinstance(field, fields.StringField):
        return text
    if isinstance(field, fields.StringVectorField):
        return st.lists(text, max_size=3)
    if isinstance(field, fields.VectorField):
        return st.lists(scalars(field.type), max_size=5).map(lambda items: np.array(items, field.type.dtype))
    if isinstance(field, fields.EnumVectorField):
        return st.lists(st.sampled_from(list(field.members)), max_size=4)
    if isinstance(field, fields.TableVectorField):
        return st.lists(tables(field.target, depth - 1), max_size=2) if depth else st.just([])
    if isinstance(field, fields.TableField):
        return tables(field.target, depth - 1) if depth else st.none()
    if isinstance(field, fields.UnionField):
        members = list(field.union.MEMBERS.values())
        return st.sampled_from(members).flatmap(lambda cls: tables(cls, depth - 1)) if depth else st.none()
    return st.none()


@st.composite
def tables(draw: st.DrawFn, cls: type[Table], depth: int) -> Table:
    """Draw a table; about half of its fields are absent."""
    table = cls()
    for field in cls.FIELDS:
        if draw(st.booleans()):
            setattr(table, field.name, draw(values(field, depth)))
    return table
