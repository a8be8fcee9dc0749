"""The table system: declaration, presence, comparison, conversion of what is set, and round trips of every kind."""

from __future__ import annotations

import copy
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given, settings

from tests.schemas.strategies import tables
from tflq.errors import FormatError
from tflq.limits import Limits, apply_limits
from tflq.schemas.flatbuffer import Table, Union, decode, encode
from tflq.schemas.flatbuffer import declare as d
from tflq.schemas.flatbuffer.scalars import INT32, UINT32

IDENTIFIER = b"TEST"


class Color(IntEnum):
    RED = 0
    GREEN = 3
    BLUE = 7


class Shape(Union):
    """Base of the union."""


class Circle(Shape, member=1):
    radius: float = d.float32(1.5)


class Square(Shape, member=2):
    side: int = d.int64(-1)
    tags: d.VectorOf[np.uint16] = d.vector(np.uint16, align=8)


class Everything(Table):
    flag: bool = d.boolean()
    yes: bool = d.boolean(True)
    i8: int = d.int8(-5)
    u8: int = d.uint8()
    i16: int = d.int16()
    u16: int = d.uint16()
    i32: int = d.int32(7)
    u32: int = d.uint32()
    i64: int = d.int64()
    u64: int = d.uint64()
    f32: float = d.float32(0.5)
    f64: float = d.float64()
    maybe: int | None = d.optional(d.int16())
    perhaps: bool | None = d.optional(d.boolean())
    ratio: float | None = d.optional(d.float64())
    color: Color = d.enum(Color.GREEN)
    name: str | None = d.string()
    names: list[str] | None = d.strings()
    bools: d.VectorOf[np.bool_] = d.vector(np.bool_)
    data: d.VectorOf[np.uint8] = d.vector(np.uint8, align=32)
    shorts: d.VectorOf[np.int16] = d.vector(np.int16)
    longs: d.VectorOf[np.int64] = d.vector(np.int64)
    floats: d.VectorOf[np.float32] = d.vector(np.float32)
    doubles: d.VectorOf[np.float64] = d.vector(np.float64)
    colors: list[Color] | None = d.enums(Color, UINT32)
    one: Circle | None = d.table(Circle)
    many: list[Square] | None = d.tables(Square)
    shape_type: int = d.union_type()
    shape: Shape | None = d.union(Shape)
    other_type: int = d.union_type()
    other: Shape | None = d.union(Shape)


def again(table: Everything) -> Everything:
    return decode(encode(table, IDENTIFIER), Everything, IDENTIFIER, "test").root


@settings(max_examples=300, deadline=None)
@given(tables(Everything, 3))
def test_any_table_survives_writing_and_reading(table):
    written = encode(table, IDENTIFIER)
    decoded = decode(written, Everything, IDENTIFIER, "test")
    assert decoded.root == table
    assert decoded.end_bytes <= len(written)
    assert encode(decoded.root, IDENTIFIER) == written
    for name in Everything.BY_NAME:
        assert decoded.root.is_present(name) == table.is_present(name)


@settings(max_examples=100, deadline=None)
@given(tables(Everything, 2))
def test_vectors_lie_at_their_alignment(table):
    written = encode(table, IDENTIFIER)
    whole = np.frombuffer(written, np.uint8).__array_interface__["data"][0]
    decoded = decode(written, Everything, IDENTIFIER, "test").root
    if decoded.data is not None and decoded.data.size:
        assert (decoded.data.__array_interface__["data"][0] - whole) % 32 == 0
    if decoded.longs is not None and decoded.longs.size:
        assert (decoded.longs.__array_interface__["data"][0] - whole) % 8 == 0


def test_absent_fields_read_as_the_default_of_the_schema():
    table = again(Everything())
    assert table.present() == {}
    assert (table.flag, table.yes, table.i8, table.f32, table.maybe) == (False, True, -5, 0.5, None)
    assert (table.color, table.name, table.bools, table.one, table.many) == (Color.GREEN, None, None, None, None)
    assert (table.shape, table.shape_type) == (None, 0)


def test_a_default_that_is_set_is_present_and_an_empty_vector_is_not_absent():
    table = again(Everything(i32=7, names=[], data=[], many=[], name=""))
    assert [name for name in Everything.BY_NAME if table.is_present(name)] == ["i32", "name", "names", "data", "many"]
    assert table.data is not None
    assert table.data.size == 0
    assert table != Everything(names=[], data=[], many=[], name="")


def test_setting_none_and_deleting_make_a_field_absent():
    table = Everything(i32=1, name="x", longs=[1])
    table.name = None
    del table.i32
    table.longs = None
    assert table == Everything()
    assert table.i32 == 7


def test_the_type_of_a_union_follows_from_its_value_and_a_bare_type_is_kept():
    assert Everything(shape=Square()).shape_type == 2
    bare = again(Everything(shape_type=1))
    assert (bare.shape_type, bare.shape, bare.is_present("shape_type")) == (1, None, True)
    none = again(Everything(shape_type=0))
    assert none.is_present("shape_type")
    assert none != Everything()
    both = Everything(shape_type=1, shape=Square())
    assert both == again(both) == Everything(shape=Square())


def test_equality_is_bit_for_bit():
    assert Everything(f32=float("nan")) == Everything(f32=float("nan"))
    assert Everything(f32=0.0) != Everything(f32=-0.0)
    assert Everything(floats=[float("nan")]) == Everything(floats=[float("nan")])
    assert Everything(floats=[0.0]) != Everything(floats=[-0.0])
    assert Everything(flag=False) != Everything()
    assert Everything(many=[Square()]) != Everything(many=[Square(side=-1)])
    assert Circle() != Square()
    assert Circle() != 1


def test_vectors_read_are_views_that_cannot_be_written():
    data = encode(Everything(data=bytes(1000), bools=[True]), IDENTIFIER)
    table = decode(data, Everything, IDENTIFIER, "test").root
    assert np.shares_memory(table.data, np.frombuffer(data, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        table.data[0] = 1
    writable = bytearray(data)
    with pytest.raises(ValueError, match="read-only"):
        decode(writable, Everything, IDENTIFIER, "test").root.data[0] = 1


def test_lists_bytes_and_other_integer_types_are_converted():
    table = Everything(data=b"ab", shorts=np.array([1, -2], np.int64), longs=(1, 2), f32=0.1, color=7)
    assert table.data.tolist() == [97, 98]
    assert table.shorts.dtype == np.int16
    assert table.longs.tolist() == [1, 2]
    assert table.f32 == float(np.float32(0.1))
    assert table.color is Color.BLUE
    assert again(table) == table


def test_a_list_that_is_set_stays_the_callers():
    squares = []
    table = Everything(many=squares)
    squares.append(Square(side=2))
    assert again(table).many == [Square(side=2)]


def test_copies():
    table = Everything(data=b"ab", many=[Square(tags=[1])])
    deep = copy.deepcopy(table)
    assert deep == table
    deep.many[0].side = 5
    assert deep != table
    assert copy.copy(table) == table


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="Circle has no field 'radios'; it has radius"):
        Circle(radios=1)
    with pytest.raises(AttributeError, match="has no field"):
        Circle().is_present("x")
    with pytest.raises(AttributeError, match="has no field"):
        del Circle().x
    with pytest.raises(AttributeError, match="x"):
        _ = Circle().x


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("u8", 256, r"Everything.u8: found 256; allowed are integers from 0 to 255"),
        ("u8", -1, "integers from 0 to 255"),
        ("u8", True, "found True"),
        ("u8", 1.0, "found 1.0"),
        ("i64", 1 << 63, "integers from"),
        ("flag", 1, "allowed are True and False"),
        ("f32", 1e300, "range of float32"),
        ("f32", "1", "numbers"),
        ("color", 1, "members of Color"),
        ("color", "RED", "members of Color"),
        ("name", b"x", "allowed is a str"),
        ("name", "\ud800", "UTF-8"),
        ("names", "abc", "allowed is a list"),
        ("names", [1], r"names\[0\]"),
        ("bools", [1], r"bools\[0\]"),
        ("bools", np.array([1]), "array int64"),
        ("data", [256], r"data\[0\]"),
        ("data", np.array([256]), "uint8 can hold"),
        ("data", np.zeros((2, 2), np.uint8), "one-dimensional"),
        ("data", np.array([0.5]), "array float64"),
        ("shorts", b"ab\0\0", None),
        ("longs", 5, "allowed is a list"),
        ("floats", ["x"], r"floats\[0\]"),
        ("colors", [5], r"colors\[0\]"),
        ("one", Square(), "found Square; allowed is Circle"),
        ("many", [Circle()], r"many\[0\]: found Circle; allowed is Square"),
        ("shape", Everything(), "found Everything; allowed is a member of Shape"),
        ("shape_type", 3, "allowed are 0 to 2"),
    ],
)
def test_values_that_do_not_fit_are_refused(name, value, message):
    if message is None:
        assert Everything(**{name: value}).shorts.tolist() == list(value)
        return
    with pytest.raises(FormatError, match=message):
        Everything(**{name: value})


def test_a_wrong_table_put_into_a_list_later_is_refused_when_written():
    table = Everything(many=[Square()])
    table.many.append(Circle())
    with pytest.raises(FormatError, match=r"model: Everything\.many\[1\]: found Circle; allowed is a Square"):
        encode(table, IDENTIFIER)


class Later(Table):
    first: int = d.int32()
    second: int = d.int32()
    third: d.VectorOf[np.int32] = d.vector(np.int32)


class Earlier(Table):
    first: int = d.int32()


def test_fields_newer_than_the_schema_are_refused_and_missing_ones_absent():
    with pytest.raises(FormatError, match=r"Earlier: found 3 fields in Earlier; allowed is the 1 .* update tflq"):
        decode(encode(Later(third=[1]), IDENTIFIER), Earlier, IDENTIFIER, "test")
    assert decode(encode(Later(first=4), IDENTIFIER), Earlier, IDENTIFIER, "test").root == Earlier(first=4)
    assert decode(encode(Earlier(first=4), IDENTIFIER), Later, IDENTIFIER, "test").root == Later(first=4)


def test_enum_members_newer_than_the_schema_are_refused():
    class Number(Table):
        value: int = d.int8()
        items: d.VectorOf[np.uint32] = d.vector(np.uint32)

    class Named(Table):
        value: Color = d.enum(Color.RED)
        items: list[Color] | None = d.enums(Color, UINT32)

    with pytest.raises(FormatError, match=r"Named.value: found Color 5; allowed is 0 to 7"):
        decode(encode(Number(value=5), IDENTIFIER), Named, IDENTIFIER, "test")
    with pytest.raises(FormatError, match=r"Named.items: found Color 8"):
        decode(encode(Number(items=[3, 8]), IDENTIFIER), Named, IDENTIFIER, "test")
    assert decode(encode(Number(value=7, items=[3, 0]), IDENTIFIER), Named, IDENTIFIER, "test").root == Named(
        value=Color.BLUE, items=[Color.GREEN, Color.RED]
    )


def chain(depth: int) -> Table:
    table = type("Leaf", (Table,), {"value": d.int32()})(value=1)
    for _ in range(depth - 1):
        table = type("Link", (Table,), {"child": d.table(type(table))})(child=table)
    return table


def test_nesting_is_limited_in_reading_and_writing():
    deepest = chain(64)
    written = encode(deepest, IDENTIFIER)
    assert decode(written, type(deepest), IDENTIFIER, "test").root == deepest
    too_deep = type("Link", (Table,), {"child": d.table(type(deepest))})(child=deepest)
    with pytest.raises(FormatError, match="more than 64 tables within each other"):
        encode(too_deep, IDENTIFIER)
    with apply_limits(Limits(max_depth=65)):
        written = encode(too_deep, IDENTIFIER)
        assert decode(written, type(too_deep), IDENTIFIER, "test").root == too_deep
    with pytest.raises(FormatError, match=r"Link(\.child){64}: found more than 64 tables .*; raise the limit"):
        decode(written, type(too_deep), IDENTIFIER, "test")


def test_a_cycle_of_tables_is_refused_when_written():
    class Node(Table):
        children: list[Table] | None = d.tables(Table)

    node = Node()
    node.children = [node]
    with pytest.raises(FormatError, match="within each other"):
        encode(node, IDENTIFIER)


def test_scalars_are_listed_for_optional_fields():
    assert Everything(maybe=0).is_present("maybe")
    assert again(Everything(maybe=0, perhaps=False, ratio=0.0)) == Everything(maybe=0, perhaps=False, ratio=0.0)
    assert INT32.size == 4
