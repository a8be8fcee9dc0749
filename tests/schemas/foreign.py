"""Somebody else's reader of the schema: the code that flatc generated, as ai-edge-litert and tensorflow ship it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tflq.schemas.flatbuffer.table import Table

FILES = {
    "litert": ("ai_edge_litert", "schema_py_generated.py"),
    "tensorflow": ("tensorflow", "lite/python/schema_py_generated.py"),
}


def source(package: str) -> Path:
    """Return the generated file of a package without importing the package; skip if it is not installed."""
    name, path = FILES[package]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{name} is not installed: no generated schema to compare with")
    return Path(spec.submodule_search_locations[0], path)


@cache
def reader(package: str = "litert") -> ModuleType:
    """Load the generated file."""
    spec = importlib.util.spec_from_file_location(f"foreign_{package}", source(package))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Slot:
    """What the generated writer says about a field: its place, how it is stored, its default."""

    slot: int
    type: str
    default: float


def slots(package: str) -> dict[str, dict[str, Slot]]:
    """Return the fields of every table by their CamelCase names, deprecated ones missing."""
    text = source(package).read_text()
    found = {name: {} for name in re.findall(r"^def (\w+)Start\(builder\):", text, re.M)}
    pattern = r"^def (\w+)\(builder, \w+\):\n    builder\.Prepend(\w+)Slot\((\d+), .*, (\S+)\)$"
    for function, kind, slot, default in re.findall(pattern, text, re.M):
        table = max((t for t in found if function.startswith(t + "Add")), key=len)
        found[table][function[len(table) + 3 :]] = Slot(int(slot), kind, float(default))
    return found


def slot_counts(package: str) -> dict[str, int]:
    """Return the number of slots of every table, deprecated ones counted."""
    pattern = r"^def (\w+)Start\(builder\):\n    builder\.StartObject\((\d+)\)"
    return {name: int(count) for name, count in re.findall(pattern, source(package).read_text(), re.M)}


def vector_sizes(package: str) -> dict[str, int]:
    """Return bytes per element of every vector by table and CamelCase name."""
    pattern = r"^def (\w+?)Start(\w+)Vector\(builder, numElems\):\n    return builder\.StartVector\((\d+),"
    text = source(package).read_text()
    return {f"{table}.{name}": int(size) for table, name, size in re.findall(pattern, text, re.M)}


def enums(package: str) -> dict[str, dict[str, int]]:
    """Return the members of every enum; those of a union are the tables it holds, and NONE."""
    found = {}
    for name, value in vars(reader(package)).items():
        if isinstance(value, type) and not hasattr(value, "Init") and not hasattr(value, "InitFromBuf"):
            found[name] = {n: v for n, v in vars(value).items() if not n.startswith("_")}
    return found


def camel(name: str) -> str:
    """Return a field's name as the generator writes it."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def tree(data: bytes, package: str = "litert") -> object:
    """Read a whole model with the generated reader."""
    return reader(package).ModelT.InitFromPackedBuf(data, 0)


def packed(model: object) -> bytes:
    """Write a tree with the generated writer."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def difference(one: object, other: object, path: str = "Model") -> str | None:
    """Return the first place where two foreign trees differ, None where they are equal."""
    if type(one) is not type(other):
        return f"{path}: {type(one).__name__} and {type(other).__name__}"
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.tobytes() == other.tobytes()
        return None if same else f"{path}: {one} and {other}"
    if isinstance(one, list):
        if len(one) != len(other):
            return f"{path}: {len(one)} and {len(other)} elements"
        pairs = ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True)))
    elif hasattr(one, "__dict__"):
        pairs = ((f"{path}.{name}", value, getattr(other, name)) for name, value in vars(one).items())
    else:
        same = one == other or (one != one and other != other)
        return None if same else f"{path}: {one!r} and {other!r}"
    return next((found for p, a, b in pairs if (found := difference(a, b, p))), None)


def mismatch(ours: object, theirs: object, path: str = "Model") -> str | None:
    """Return the first place where our value differs from the generated reader's, None where they are equal."""
    if isinstance(ours, Table):
        if theirs is None or type(theirs).__name__ != type(ours).__name__ + "T":
            return f"{path}: {type(ours).__name__} and {type(theirs).__name__}"
        names = [(f.name, camel(f.name)) for f in ours.FIELDS]
        pairs = [(n, getattr(theirs, c[:1].lower() + c[1:], _DEPRECATED)) for n, c in names]
        results = (mismatch(getattr(ours, n), value, f"{path}.{n}") for n, value in pairs if value is not _DEPRECATED)
        return next(filter(None, results), None)
    if isinstance(ours, list) and isinstance(theirs, (list, np.ndarray)):
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} and {len(theirs)} elements"
        results = (mismatch(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs, strict=True)))
        return next(filter(None, results), None)
    if isinstance(ours, np.ndarray) and theirs is not None:
        theirs = np.array(theirs, ours.dtype) if isinstance(theirs, list) else theirs
        same = ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()
    elif isinstance(ours, str):
        same = theirs == ours.encode()
    else:
        same = ours == theirs or (ours != ours and theirs != theirs)
    return None if same else f"{path}: {ours!r} and {theirs!r}"


_DEPRECATED = object()
