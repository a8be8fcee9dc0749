"""Tensor dumps of a board or another simulator: .npz, .npy, or raw bytes with a map."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from tflq.analysis.compare.matching import require_known
from tflq.analysis.compare.sides import Column, Running
from tflq.analysis.inputs.files import read_npy, read_npz
from tflq.errors import InputError, UsageError
from tflq.files import read_bytes
from tflq.graph import Array, DType, Tensor

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64")
_MAP = '{"sample_bytes": N, "tensors": {NAME: {"offset": N, "dtype": "int8", "shape": [...]}}}'


@dataclass(frozen=True)
class Dump:
    """Arrays by tensor name, each [S, *shape] once it is fitted to the tensors of the other side.

    Attributes:
        name: the file.
        columns: its tensors; `tensor` is what `fitted` found for it, else None.
        arrays: by column name.
        count: number of samples; None before it is fitted, unless the file says so.
    """

    name: str
    columns: tuple[Column, ...]
    arrays: Mapping[str, Array]
    count: int | None = None

    def take(self, start: int, stop: int, columns: Collection[Column]) -> dict[str, Array]:
        """Return some samples."""
        return {c.name: np.asarray(self.arrays[c.name][start:stop]) for c in columns}

    def fitted(self, others: Mapping[str, Column]) -> Dump:
        """Give arrays the sample axis, the encoding and the names of the tensors that they are dumps of.

        An array of the tensor's own type holds quantized values; one of floating point holds real numbers.

        Args:
            others: columns of the other side, by this side's names; columns without one are dropped.

        Raises:
            InputError: a wrong size or type, or different numbers of samples.
        """
        columns, arrays = [], {}
        for c in self.columns:
            other = others.get(c.name)
            if other is not None and other.tensor is not None:
                arrays[other.name], tensor = _fit(f"{self.name}: '{c.name}'", self.arrays[c.name], other.tensor)
                columns.append(Column(other.name, tensor, c.index))
        return Dump(self.name, tuple(columns), arrays, _samples(self.name, arrays))

    def counterparts(self, side: Running) -> dict[str, Column]:
        """Return the tensors that this dump's names mean: those of tensors, else of the operators that write them.

        Raises:
            UsageError: an array without a name, for a model with several outputs.
            InputError: a name that the model does not have.
        """
        if [c.name for c in self.columns] == [""]:
            outputs = [c for c in side.columns if c.index in side.execution.graph.outputs]
            if len(outputs) != 1:
                raise UsageError(f"{self.name}: write TENSOR={self.name}; the model has {len(outputs)} outputs")
            return {"": outputs[0]}
        known = {**{c.node: c for c in side.columns if c.node}, **{c.name: c for c in side.columns}}
        require_known([c.name for c in self.columns], list(known), self.name)
        return {c.name: known[c.name] for c in self.columns}

    def as_it_is(self) -> Dump:
        """Take the first axis of every array as the samples, for two dumps without a model."""
        return Dump(self.name, self.columns, self.arrays, _samples(self.name, self.arrays))


def read_dump(path: str | os.PathLike[str], name: str | None = None, map_path: str | None = None) -> Dump:
    """Read a dump.

    Args:
        path: .npz, .npy or .bin.
        name: tensor that an .npy holds.
        map_path: JSON that says where the tensors lie in a .bin.

    Raises:
        InputError: a file that cannot be read, a map that does not fit it, a .bin without a map.
    """
    kind = os.path.splitext(path)[1].lower()
    if kind == ".npz":
        arrays = read_npz(path)
    elif kind == ".npy":
        arrays = {name or "": read_npy(path)}
    elif kind == ".bin":
        if map_path is None:
            raise InputError(f"{path}: raw bytes need --map FILE with {_MAP}")
        arrays = _mapped(path, map_path)
    else:
        raise InputError(f"{path}: the file's name must end in .npz, .npy or .bin")
    for key, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise InputError(f"{path}: '{key}' is {array.dtype}; integers or real numbers are needed")
    return Dump(str(path), tuple(Column(key, None, i) for i, key in enumerate(arrays)), arrays)


def _fit(where: str, array: Array, tensor: Tensor) -> tuple[Array, Tensor]:
    is_real = array.dtype.kind == "f"
    if not is_real and array.dtype != tensor.dtype.storage:
        raise InputError(f"{where} is {array.dtype}; the tensor is {tensor.dtype.value}, or give real numbers")
    samples, rest = divmod(array.size, max(tensor.size, 1))
    if rest or not samples or not _same_layout(array.shape, tensor.shape, samples):
        raise InputError(
            f"{where} has shape {list(array.shape)}; the tensor has {list(tensor.shape)}, "
            f"or [samples, {', '.join(map(str, tensor.shape))}], or the same without axes of size 1"
        )
    fitted = array.reshape(samples, *tensor.shape)
    if is_real:
        return fitted, Tensor(tensor.name, tensor.shape, DType.of(array.dtype))
    return fitted, tensor


def _same_layout(found: tuple[int, ...], shape: tuple[int, ...], samples: int) -> bool:
    """Whether an array is flat, or has the tensor's axes but for those of size 1: another order is not guessed."""
    wanted = [n for n in (samples, *shape) if n != 1]
    flat = ([samples, int(np.prod(shape))], [samples * int(np.prod(shape))])
    return [n for n in found if n != 1] == wanted or list(found) in flat


def _samples(where: str, arrays: Mapping[str, Array]) -> int:
    counts = {name: len(array) if array.ndim else 1 for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        words = ", ".join(f"'{name}' {count}" for name, count in list(counts.items())[:6])
        raise InputError(f"{where}: tensors have different numbers of samples: {words}; they need the same number")
    return next(iter(counts.values()), 0)


def _mapped(path: str | os.PathLike[str], map_path: str) -> dict[str, Array]:
    content = np.frombuffer(bytes(read_bytes(path)), np.uint8)
    sample_bytes, entries = _read_map(map_path)
    stride = content.size if sample_bytes is None else sample_bytes
    if stride < 1 or content.size % stride or not content.size:
        raise InputError(f"{path}: has {content.size} bytes, which is no multiple of the {stride} bytes of one sample")
    rows = content.reshape(-1, stride)
    arrays: dict[str, Array] = {}
    for name, (offset, dtype, shape) in entries.items():
        end = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if end > stride:
            raise InputError(f"{map_path}: '{name}' ends at byte {end}, a sample of {path} has {stride} bytes")
        arrays[name] = np.ascontiguousarray(rows[:, offset:end]).view(dtype).reshape(len(rows), *shape)
    return arrays


def _read_map(path: str) -> tuple[int | None, dict[str, tuple[int, np.dtype[np.generic], tuple[int, ...]]]]:
    try:
        found = json.loads(bytes(read_bytes(path)))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: is no JSON: {error}") from None
    tensors = found.get("tensors") if isinstance(found, dict) else None
    stride = found.get("sample_bytes") if isinstance(found, dict) else None
    if not isinstance(tensors, dict) or not tensors or not (stride is None or _is_size(stride)):
        raise InputError(f"{path}: is no map of a dump; it needs {_MAP}")
    return stride, {name: _entry(path, name, entry) for name, entry in tensors.items()}


def _entry(path: str, name: str, entry: object) -> tuple[int, np.dtype[np.generic], tuple[int, ...]]:
    values = entry if isinstance(entry, dict) else {}
    offset, dtype, shape = values.get("offset"), values.get("dtype"), values.get("shape")
    if not _is_size(offset) or dtype not in _TYPES or not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise InputError(
            f"{path}: '{name}' needs an offset in bytes, a shape and a dtype of {', '.join(_TYPES)}; found {entry!r}"
        )
    return int(str(offset)), np.dtype(str(dtype)).newbyteorder("<"), tuple(int(n) for n in shape)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
