"""Inputs of reading a dump: options of the caller, arrays as stored in files, and the tensors that they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflq.errors import OptionError

if TYPE_CHECKING:
    from tflq.graph import Array, Tensor


@dataclass(frozen=True, eq=False)
class Stored:
    """One array of a dump.

    Attributes:
        name: Name of the array or its file.
        array: Stored array; raw bytes are uint8[n].
        alias: Second name in the file, from a comment.
        is_raw: True if these are bytes of a type that the file does not specify.
        is_flat: True if the file specifies no shape.
        may_be_short: whether it may end before the tensor does, as blocks of a log do.
        sample: Number of the array's sample if the file specifies it.
        channels_first: whether its format is known to be planar.
        step: Smallest step of the format (20.12 fixed point: 1 / 4096); 0 for other formats.
    """

    name: str
    array: Array
    alias: str = ""
    is_raw: bool = False
    is_flat: bool = False
    may_be_short: bool = False
    sample: int | None = None
    channels_first: bool = False
    step: float = 0.0


@dataclass(frozen=True)
class Archive:
    """Contents of the files of a dump.

    Attributes:
        path: Path of the file or folder.
        arrays: Arrays in the order of the file.
        notes: Notes about other contents, as text.
        is_unnamed: whether its only array has no name but the file's.
    """

    path: str
    arrays: tuple[Stored, ...]
    notes: tuple[str, ...] = ()
    is_unnamed: bool = False


@dataclass(frozen=True)
class Wanted:
    """A tensor of a model that a dump may contain.

    Attributes:
        name: Name in reports.
        tensor: Shape and encoding.
        names: Possible names in the dump: of the tensor, of its node, of the model's tensor.
        operator: number of the model's operator that writes it; None for inputs and tensors that a target inserted.
        index: Index in the model's file; None if the file has no such tensor.
        is_output: whether it is an output of the graph.
    """

    name: str
    tensor: Tensor
    names: tuple[str, ...]
    operator: int | None
    index: int | None
    is_output: bool


LAYOUTS = ("nhwc", "nchw")
OPERATORS, FROM_ONE, TENSORS = "operators", "operators-from-1", "tensors"
NUMBERINGS = (OPERATORS, FROM_ONE, TENSORS)
QUANTIZED, REAL = "quantized", "real"
VALUES = (QUANTIZED, REAL)
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64")


@dataclass(frozen=True)
class DumpOptions:
    """Layout and encoding of a dump, as far as its files do not specify them.

    Attributes:
        map_path: JSON file with the positions of the tensors in raw bytes (docs/guides/dumps.md).
        layout: Order of a dump's axes, if shapes do not determine it.
        numbers: Meaning of the numbers in names of a dump, if shapes do not determine it.
        values: Meaning of integral floats: quantized values, or dequantized ("real") values.
        dtype: Type of a dump's raw bytes.
    """

    map_path: str | None = None
    layout: str | None = None
    numbers: str | None = None
    values: str | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        allowed = {"layout": LAYOUTS, "numbers": NUMBERINGS, "values": VALUES, "dtype": TYPES}
        for name, choices in allowed.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise OptionError(f"{name} '{value}' of a dump; allowed are {', '.join(choices)}")
