"""What reading a dump is given: options of the caller, arrays as a file stores them, tensors that they may be."""

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
        name: of the array or its file.
        array: as it is stored; raw bytes are uint8[n].
        alias: another name that the file gives it, in a comment.
        is_raw: whether these are bytes of a type that the file does not tell.
        is_flat: whether the file tells no shape.
        may_be_short: whether it may end before the tensor does, as blocks of a log do.
        sample: number of the sample that it is of, where the file tells.
        channels_first: whether its format is known to be planar.
        step: distance of the numbers that the format can hold (20.12 fixed point: 1 / 4096); 0 for others.
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
    """What the files of a dump hold.

    Attributes:
        path: of the file or folder.
        arrays: in the order of the file.
        notes: what was found beside them, in words.
        is_unnamed: whether its only array has no name but the file's.
    """

    path: str
    arrays: tuple[Stored, ...]
    notes: tuple[str, ...] = ()
    is_unnamed: bool = False


@dataclass(frozen=True)
class Wanted:
    """A tensor of a model that a dump may hold.

    Attributes:
        name: how reports call it.
        tensor: its shape and encoding.
        names: what it may be called: its own name, that of its node, that of the model's tensor.
        operator: number of the model's operator that writes it; None for inputs and what a target inserted.
        index: its number in the model's file; None where the file has no such tensor.
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
