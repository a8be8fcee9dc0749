"""Our declarations hold the same facts as the code that flatc generated: slots, types, defaults, enums, unions."""

from __future__ import annotations

from enum import IntEnum

import pytest

from tests.schemas import foreign
from tflq.schemas import tflite
from tflq.schemas.flatbuffer import fields
from tflq.schemas.flatbuffer.table import Table, Union

BASES = {Table, Union, tflite.BuiltinOptions, tflite.BuiltinOptions2}
BASES |= {tflite.QuantizationDetails, tflite.SparseIndexVector}
EXPORTED = [value for value in vars(tflite).values() if isinstance(value, type)]
TABLES = {cls.__name__: cls for cls in EXPORTED if issubclass(cls, Table) and cls not in BASES}
ENUMS = {cls.__name__: cls for cls in EXPORTED if issubclass(cls, IntEnum) and cls is not IntEnum}
UNIONS = [tflite.BuiltinOptions, tflite.BuiltinOptions2, tflite.QuantizationDetails, tflite.SparseIndexVector]
DEPRECATED = {
    "ResizeBilinearOptions": {"NewHeight", "NewWidth"},
    "SignatureDef": {"DeprecatedTag"},
}
# What tensorflow 2.21's copy of the schema does not have yet. ai-edge-litert 2.3 has everything.
NEWER_THAN_TENSORFLOW = {
    "tables": {"MultiAxisQuantization"},
    "fields": {"BlockwiseQuantization": {"BlockShape"}, "FullyConnectedOptions": {"QuantSpec"}},
    "members": {"TensorType.FLOAT8_E4M3FN", "TensorType.FLOAT8_E5M2", "QuantizationDetails.MultiAxisQuantization"},
}


def stored(field: fields.Field) -> foreign.Slot:
    kind = "UOffsetTRelative" if field.scalar is None else field.scalar.name
    return foreign.Slot(field.slot, kind, float(field.default or 0) if isinstance(field, fields.ScalarField) else 0.0)


def newer_fields(package: str, table: str) -> set[str]:
    return NEWER_THAN_TENSORFLOW["fields"].get(table, set()) if package == "tensorflow" else set()


@pytest.mark.parametrize("package", ["litert", "tensorflow"])
def test_every_slot_type_and_default_is_that_of_the_generated_code(package):
    theirs = foreign.slots(package)
    missing = NEWER_THAN_TENSORFLOW["tables"] if package == "tensorflow" else set()
    assert set(TABLES) - missing == set(theirs)
    for name, slots in theirs.items():
        ours = {foreign.camel(field.name): stored(field) for field in TABLES[name].FIELDS}
        unknown = DEPRECATED.get(name, set()) | newer_fields(package, name)
        assert unknown <= set(ours), name
        assert {field: slot for field, slot in ours.items() if field not in unknown} == slots, name


@pytest.mark.parametrize("package", ["litert", "tensorflow"])
def test_deprecated_slots_are_counted(package):
    counts = foreign.slot_counts(package)
    assert {name: len(TABLES[name].FIELDS) - len(newer_fields(package, name)) for name in counts} == counts
    assert len(TABLES) == 170


@pytest.mark.parametrize("package", ["litert", "tensorflow"])
def test_vector_elements_have_the_same_size(package):
    ours = {}
    for name, cls in TABLES.items():
        for field in cls.FIELDS:
            if isinstance(field, (fields.VectorField, fields.EnumVectorField)):
                ours[f"{name}.{foreign.camel(field.name)}"] = field.type.size
            elif isinstance(field, (fields.TableVectorField, fields.StringVectorField)):
                ours[f"{name}.{foreign.camel(field.name)}"] = 4
    if package == "tensorflow":
        for name in list(ours):
            table, field = name.split(".")
            if table in NEWER_THAN_TENSORFLOW["tables"] or field in newer_fields(package, table):
                del ours[name]
    assert ours == foreign.vector_sizes(package)


@pytest.mark.parametrize("package", ["litert", "tensorflow"])
def test_every_enum_and_union_has_the_same_members(package):
    ours = {name: {member.name: int(member) for member in cls} for name, cls in ENUMS.items()}
    for union in UNIONS:
        ours[union.__name__] = {"NONE": 0} | {cls.__name__: union.code(cls()) for cls in union.MEMBERS.values()}
    if package == "tensorflow":
        for name in NEWER_THAN_TENSORFLOW["members"]:
            enum, member = name.split(".")
            del ours[enum][member]
    assert ours == foreign.enums(package)


def test_alignments_are_those_of_the_schema():
    aligned = {
        f"{name}.{field.name}": field.align
        for name, cls in TABLES.items()
        for field in cls.FIELDS
        if isinstance(field, fields.VectorField) and field.align != field.type.size
    }
    assert aligned == {
        "Buffer.data": 16,
        "CustomQuantization.custom": 16,
        "Uint16Vector.values": 4,
        "Uint8Vector.values": 4,
    }


def test_operator_codes_follow_the_greater_field():
    code = tflite.OperatorCode(deprecated_builtin_code=3)
    assert tflite.builtin_code(code) is tflite.BuiltinOperator.CONV_2D
    code = tflite.OperatorCode(deprecated_builtin_code=127, builtin_code=tflite.BuiltinOperator.GELU)
    assert tflite.builtin_code(code) is tflite.BuiltinOperator.GELU
    assert tflite.builtin_code(tflite.OperatorCode(deprecated_builtin_code=-1)) is tflite.BuiltinOperator.ADD


@pytest.mark.parametrize("operator", list(tflite.BuiltinOperator))
def test_setting_a_code_fills_both_fields(operator):
    code = tflite.OperatorCode()
    tflite.set_builtin_code(code, operator)
    assert (code.deprecated_builtin_code, code.builtin_code) == (min(operator, 127), operator)
    assert tflite.builtin_code(code) is operator
