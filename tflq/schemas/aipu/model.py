"""Compass IR in memory: a header, layers in order, and constants as arrays (docs/rules/aipu/compass_ir.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tflq.arrays import Array

Scalar = bool | int | float | str
Value = Scalar | tuple["Value", ...]
"""A value of the text: `[1,[2,3]]` is a tuple of tuples."""


STORAGE = MappingProxyType(
    {
        **{n: n for n in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "bool")},
        **{n: n for n in ("uint8", "uint16", "uint32", "uint64")},
        "bfloat16": "uint16",
        "aligned_int4": "int8",
        "aligned_uint4": "uint8",
        "aligned_int12": "int16",
        "aligned_uint12": "uint16",
        "float8_e4m3fn": "uint8",
        "float8_e5m2": "uint8",
        "float4_e2m1fn": "uint8",
    }
)
"""Name of an element type -> numpy's type of one element in the binary file (little-endian)."""


@dataclass(frozen=True)
class Edge:
    """A tensor at a layer's end.

    Attributes:
        name: a bottom has the name of an earlier top.
        shape: batch included; empty for a scalar.
        dtype: element type by name.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor of the binary file.

    Attributes:
        data: in the storage type of `dtype`; its shape is the constant's.
        dtype: element type by name.
    """

    data: Array
    dtype: str

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and (self.dtype, self.data.shape) == (other.dtype, other.data.shape)
            and self.data.tobytes() == other.data.tobytes()
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self.data.shape))


Entry = Value | Constant


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        name: unique.
        type: such as "Convolution".
        bottoms: what it reads.
        tops: what it writes.
        entries: every other key in the order of the file; a constant K stands for its four keys.
    """

    name: str
    type: str
    bottoms: tuple[Edge, ...]
    tops: tuple[Edge, ...]
    entries: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def constants(self) -> dict[str, Constant]:
        """Key -> constant."""
        return {key: entry for key, entry in self.entries.items() if isinstance(entry, Constant)}


@dataclass(frozen=True)
class Network:
    """A whole file.

    Attributes:
        header: keys of the first section in order; lists as tuples.
        layers: in order; their position is their layer_id.
    """

    header: Mapping[str, Value]
    layers: tuple[Layer, ...]

    @property
    def name(self) -> str:
        """The model's name."""
        return str(self.header["model_name"])

    @property
    def is_quantized(self) -> bool:
        """Whether every layer states scales: the Optimizer wrote it."""
        return bool(self.layers) and all("layer_top_scale" in layer.entries for layer in self.layers)
