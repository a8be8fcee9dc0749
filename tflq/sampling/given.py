"""Samples from the user's files or arrays, checked against the model's inputs: shape, dtype, range."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflq.errors import InputError, SampleError
from tflq.graph import Array, Graph, Tensor
from tflq.sampling.described import described_array, read_description
from tflq.sampling.encoding import fit, quantize_real
from tflq.sampling.files import KINDS, file_of_sample, read_npy, read_npz, read_raw
from tflq.sampling.legal import legal_values
from tflq.sampling.samples import GivenSamples

_CSV = (
    ". Write a table as .npy: numpy.save('x.npy', numpy.loadtxt('x.csv', delimiter=',', skiprows=1).reshape(SHAPE)); "
    "skiprows is the number of header rows"
)


@dataclass(frozen=True)
class _Given:
    """An array with its origin.

    Attributes:
        array: Content of the file.
        where: Name of the file, for messages.
        clipped: Number of clipped values in samples of a data description, which are already converted; else None.
    """

    array: Array
    where: str
    clipped: int | None = None


def given_inputs(
    graph: Graph, files: Sequence[str], names: Mapping[str, int] | None = None, real: bool = False
) -> GivenSamples:
    """Read and check samples for every input of a graph.

    Args:
        graph: Graph with the inputs.
        files: "NAME=FILE"; or "FILE" for single-input models, or for an .npz with the inputs' names. FILE is .npy,
            .npz, a .bin of raw samples, a folder of .bin files, or a data description, .json.
        names: Further names of inputs (a signature's), with the tensor index of each.
        real: True for floating-point values, which are converted with each input's scale and zero point.

    Raises:
        InputError: A file cannot be read, an array does not fit, an input has no file or several.
    """
    known = {**{graph.tensors[t].name: t for t in graph.inputs}, **(names or {})}
    arrays: dict[int, _Given] = {}
    for text in files:
        for t, given in _read(graph, text, known, real):
            if t in arrays:
                raise InputError(
                    f"{given.where}: input '{graph.tensors[t].name}' already has samples, of {arrays[t].where}"
                )
            arrays[t] = given
    return _convert_all(graph, arrays, real)


def given_arrays(
    graph: Graph, arrays: Mapping[str, Array], names: Mapping[str, int] | None = None, real: bool = False
) -> GivenSamples:
    """Check arrays for every input of a graph.

    Args:
        graph: Graph with the inputs.
        arrays: Name of an input -> [S, *shape]; the name may be "" for a single-input graph.
        names: Further names of inputs (a signature's), with the tensor index of each.
        real: Flag as for `given_inputs`.

    Raises:
        InputError: A name is unknown, an array does not fit, an input has no array.
    """
    known = {**{graph.tensors[t].name: t for t in graph.inputs}, **(names or {})}
    if len(graph.inputs) == 1:
        known[""] = graph.inputs[0]
    unknown = [name for name in arrays if name not in known]
    if unknown:
        raise InputError(f"no input is called '{unknown[0]}'; available: {', '.join(repr(n) for n in known if n)}")
    given = {known[name]: _Given(array, name or "the array") for name, array in arrays.items()}
    return replace(_convert_all(graph, given, real), files=())


def _convert_all(graph: Graph, given: Mapping[int, _Given], real: bool) -> GivenSamples:
    missing = [graph.tensors[t].name for t in graph.inputs if t not in given]
    if missing:
        raise InputError(f"no samples for input {', '.join(map(repr, missing))}; pass --input NAME=FILE for each")
    arrays, clipped = [], 0
    for t in graph.inputs:
        samples, outside = _convert(graph, t, given[t], real)
        arrays.append(samples)
        clipped += outside
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        each = ", ".join(f"'{graph.tensors[t].name}' {len(a)}" for t, a in zip(graph.inputs, arrays, strict=True))
        raise InputError(f"the inputs have different numbers of samples: {each}; they need the same number")
    return GivenSamples(arrays, clipped, tuple(given[t].where for t in graph.inputs))


def _convert(graph: Graph, t: int, given: _Given, real: bool) -> tuple[Array, int]:
    tensor = graph.tensors[t]
    if given.clipped is not None:
        return given.array, given.clipped
    try:
        if real:
            return quantize_real(given.array, tensor, given.where)
        return fit(given.array, tensor, legal_values(graph, t), given.where), 0
    except SampleError as error:
        file = file_of_sample(given.where, tensor, error.sample)
        if file == given.where:
            raise
        raise SampleError(f"{error}; the file is {file}", error.sample) from None


def _read(graph: Graph, text: str, known: Mapping[str, int], real: bool) -> list[tuple[int, _Given]]:
    name, path = _split(text, known)
    only = graph.inputs[0] if len(graph.inputs) == 1 else None
    t = known[name] if name is not None else only
    kind = Path(path).suffix.lower()
    if os.path.isdir(path) or kind == ".bin":
        if real:
            raise InputError(f"{path}: raw bytes have the model's own encoding; --real needs .npy or .npz")
        own = _require_index(t, path, known)
        return [(own, _Given(read_raw(path, graph.tensors[own]), path))]
    if kind == ".json":
        own = _require_index(t, path, known)
        return [(own, _Given(*_read_described(path, graph.tensors[own])))]
    if kind == ".npy":
        return [(_require_index(t, path, known), _Given(read_npy(path), path))]
    if kind != ".npz":
        raise InputError(
            f"{path}: the file's name must end in {', '.join(KINDS)} or .json, or be a folder of .bin files"
            f"{_CSV if kind == '.csv' else ''}"
        )
    arrays = read_npz(path)
    if t is not None and len(arrays) == 1:
        return [(t, _Given(next(iter(arrays.values())), path))]
    if name is not None:
        return [(known[name], _Given(_of_name(arrays, name, path), f"{path}[{name}]"))]
    return [(known[key], _Given(arrays[key], f"{path}[{key}]")) for key in _known_keys(arrays, known, path)]


def _read_described(path: str, tensor: Tensor) -> tuple[Array, str, int]:
    samples, clipped = described_array(read_description(Path(path)), tensor)
    return samples, path, clipped


def _split(text: str, known: Mapping[str, int]) -> tuple[str | None, str]:
    """Split "NAME=FILE"; names may contain "=", so known names have precedence, then an existing file with the text."""
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    if "=" not in text or os.path.exists(text):
        return None, text
    raise InputError(f"no input is called '{text.split('=', 1)[0]}'; available: {', '.join(map(repr, known))}")


def _require_index(t: int | None, path: str, known: Mapping[str, int]) -> int:
    if t is None:
        raise InputError(f"{path}: the model has several inputs; write NAME=FILE with one of {', '.join(known)}")
    return t


def _of_name(arrays: Mapping[str, Array], name: str, path: str) -> Array:
    if name not in arrays:
        raise InputError(f"{path}: contains no array '{name}'; available: {', '.join(arrays)}")
    return arrays[name]


def _known_keys(arrays: Mapping[str, Array], known: Mapping[str, int], path: str) -> list[str]:
    keys = [key for key in arrays if key in known]
    if not keys:
        raise InputError(
            f"{path}: none of its arrays ({', '.join(arrays)}) has the name of an input ({', '.join(known)})"
        )
    return keys
