"""Ranges that are there before any sample runs: a quantized graph's own, and those that a file gives.

A file has lines of tensor,minimum,maximum, or is a JSON object of name -> [minimum, maximum], or what
ai-edge-quantizer saves of a calibration: an object whose `model_qsvs` are name -> {"min": ..., "max": ...}.

What ai-edge-quantizer saves of a calibration: ranges, and what GPTQ and OSCAR ask for.

A JSON object whose `model_qsvs` are name -> {"min": nested list of one number, "max": the same, ...}; `hessian` and
`mu2` are nested lists of more (docs/targets/tflite.md).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError
from tflq.graph import ABSENT, Affine, DType, Graph, Node, Operands, Range, Tensor
from tflq.interpreter.registry import kernel
from tflq.units import finite


def computed_tensors(graph: Graph) -> tuple[int, ...]:
    """Return the graph's inputs and all that its nodes write, in order."""
    written = (t for node in graph.nodes for t in node.outputs if t != ABSENT)
    return tuple(dict.fromkeys([*graph.inputs, *written]))


def ranges_from_quantization(graph: Graph) -> Graph:
    """Return the graph with a float32 `range` of one minimum and maximum on each computed tensor that states one.

    The file's own range comes first; else scale * (lowest quantized value - zero point) and scale * (highest quantized
    value - zero point), computed in float64 and rounded once. A tensor of real numbers at a border has the range of the
    QUANTIZE that reads it, or of what the DEQUANTIZE that writes it reads: what TFLiteConverter writes by default, and
    pairs of both on the tensors of quantization-aware training. What TFLiteConverter leaves real in front of an output
    (ELU, GELU) has the range of its function over that of its input. Other tensors stay as they are.
    """
    result = graph.copy()
    for t in computed_tensors(graph):
        found = stated_range(graph.tensors[t])
        if found is not None:
            result.tensors[t] = replace(graph.tensors[t], range=found)
    quantized: dict[int, list[int]] = {}
    for node in graph.nodes:
        if node.operator == "quantize":
            quantized.setdefault(node.inputs[0], []).append(node.outputs[0])
        elif node.operator == "dequantize":
            quantized.setdefault(node.outputs[0], []).append(node.inputs[0])
    for real, others in quantized.items():
        _share_range(result, real, others)
    for node in result.nodes:
        if node.operator in _OF_ONE_NUMBER:
            _follow_function(result, node)
    return result


def _share_range(graph: Graph, real: int, quantized: Sequence[int]) -> None:
    """Give the real tensor at conversions the range of the quantized ones; where two differ, none."""
    tensor, first = graph.tensors[real], graph.tensors[quantized[0]].range
    if not tensor.dtype.is_floating or tensor.is_constant or tensor.range is not None:
        return
    if first is not None and all(graph.tensors[t].range == first for t in quantized):
        graph.tensors[real] = replace(tensor, range=first)


_OF_ONE_NUMBER = ("relu", "relu6", "leaky_relu", "elu", "gelu", "hard_swish", "logistic", "tanh", "exp")
"""Functions of one number that are finite wherever their argument is, and never far between two neighbors of 256."""


def _follow_function(graph: Graph, node: Node) -> None:
    """Give a real result without a range that of its function over 256 numbers, as many as int8 has."""
    x, y = (graph.tensors[t] for t in (node.inputs[0], node.outputs[0]))
    if x.range is None or y.range is not None or (x.dtype, y.dtype) != (DType.FLOAT32, DType.FLOAT32):
        return
    numbers = np.linspace(x.range.minimum.min(), x.range.maximum.max(), 256, dtype=np.float32)[None]
    function = kernel("float", node.operator)
    operands = Operands((replace(x, shape=(256,)),), (replace(y, shape=(256,)),), node.name)
    (found,) = function.run(function.lower(node, operands), numbers)
    if np.isfinite(found).all():
        graph.tensors[node.outputs[0]] = replace(y, range=range_of(float(found.min()), float(found.max())))


def stated_range(tensor: Tensor) -> Range | None:
    """Return the range that a tensor states, by itself or by its quantization; None where it states none."""
    if tensor.range is not None and tensor.range.minimum.size:
        found = range_of(float(tensor.range.minimum.min()), float(tensor.range.maximum.max()))
        return replace(found, statistics=tensor.range.statistics)
    affine = tensor.quantization
    if not isinstance(affine, Affine):
        return None
    scale, zero_point = affine.scale.astype(np.float64), affine.zero_point
    low, high = scale * (affine.minimum_code - zero_point), scale * (affine.maximum_code - zero_point)
    return range_of(float(low.min()), float(high.max()))


def range_of(minimum: float, maximum: float) -> Range:
    """Return a range of two float32 numbers."""
    return Range(np.array([minimum], np.float32), np.array([maximum], np.float32))


class GivenRange(NamedTuple):
    """What a file says of a tensor, the line where it does, and statistics of another tool's calibration."""

    minimum: float
    maximum: float
    line: int
    statistics: Mapping[str, NDArray[np.float64]]


GivenRanges = Mapping[str, GivenRange]
"""Tensor name -> range."""

_HEADER = ["tensor", "min", "max"]


def parse_ranges(text: str, where: str) -> GivenRanges:
    """Read a file of ranges; JSON if it starts with a brace, else lines of three fields (quoted as in any CSV file).

    Empty lines, lines that start with "#" and a first line "tensor,min,max" are left out.

    Args:
        text: of the file.
        where: the file, for messages.

    Raises:
        InputError: a wrong field count, no number, a minimum above the maximum, or a name given twice: with the line.
    """
    found: dict[str, GivenRange] = {}
    statistics: dict[str, Mapping[str, NDArray[np.float64]]] = {}
    if text.lstrip().startswith("{"):
        content = _read_json(text, where)
        statistics = saved_statistics(content, where)
        saved = saved_ranges(content)
        entries = _json_entries(content if saved is None else saved, text)
    else:
        entries = _csv_entries(text)
    for line, fields in entries:
        place = f"{where}, line {line}"
        if len(fields) != 3:
            raise InputError(f"{place}: found {len(fields)} fields; allowed are 3: tensor, minimum, maximum")
        name = fields[0].strip()
        if name in found:
            raise InputError(f"{place}: tensor '{name}' was given already in line {found[name].line}; remove one")
        low, high = (_number(field, place) for field in fields[1:])
        if low > high:
            raise InputError(f"{place}: tensor '{name}' has minimum {low:g} above maximum {high:g}")
        found[name] = GivenRange(low, high, line, statistics.get(name, {}))
    return found


def with_ranges(graph: Graph, ranges: GivenRanges, where: str) -> Graph:
    """Return the graph with these ranges on its computed and internal tensors; others keep theirs.

    Raises:
        InputError: a name that no tensor, several tensors, or a constant has: with the line.
    """
    result = graph.copy()
    computed = {*computed_tensors(graph), *(t for node in graph.nodes for t in node.intermediates or ())}
    for name, (low, high, line, statistics) in ranges.items():
        numbers = [t for t, tensor in enumerate(graph.tensors) if tensor.name == name]
        place = f"{where}, line {line}"
        if not numbers:
            some = ", ".join(f"'{graph.tensors[t].name}'" for t in sorted(computed)[:3])
            raise InputError(f"{place}: the model has no tensor '{name}'; it has {some}, ...")
        if len(numbers) > 1:
            raise InputError(f"{place}: {len(numbers)} tensors are called '{name}': {numbers}; names must be unique")
        if numbers[0] not in computed:
            if graph.tensors[numbers[0]].dtype.is_integer:
                continue  # a shape or an index: tools that run the network name every tensor
            raise InputError(f"{place}: tensor '{name}' is a constant; its range follows from its values")
        given = replace(range_of(low, high), statistics=statistics)
        result.tensors[numbers[0]] = replace(graph.tensors[numbers[0]], range=given)
    return result


def _csv_entries(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    first = True
    for fields in reader:
        if not fields or fields[0].startswith("#"):
            continue
        if not (first and [field.strip().lower() for field in fields] == _HEADER):
            yield reader.line_num, fields
        first = False


def _read_json(text: str, where: str) -> Pairs:
    def pairs(items: Pairs) -> Pairs:
        return items

    try:
        content: Pairs = json.loads(text, object_pairs_hook=pairs)
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise InputError(f"{where}, line {line}: no JSON: {error}") from None
    return content


def _json_entries(content: Pairs, text: str) -> Iterator[tuple[int, list[str]]]:
    position = 0
    for name, value in content:
        position = max(position, text.find(json.dumps(name), position), text.find(f'"{name}"', position))
        values = value if isinstance(value, list) else [value]
        yield text.count("\n", 0, position) + 1, [name, *(str(v) for v in values)]
        position += 1


def _number(text: str, place: str) -> float:
    value = finite(text)
    if value is None:
        raise InputError(f"{place}: found '{text.strip()}'; allowed is a finite number")
    return value


Pairs = list[tuple[str, object]]
"""An object as JSON's reader has it before names may repeat."""

_TENSORS = "model_qsvs"
_STATISTICS = ("hessian", "mu2", "num_samples")


LEAST = "least"
"""Statistic of an input that was below 0 in a calibration whose range begins at 0 or above: its least value."""


def saved_ranges(content: Pairs) -> Pairs | None:
    """Return name -> [minimum, maximum] of such a file; None for other files."""
    if not _is_object(dict(content).get(_TENSORS)):
        return None
    return [
        (name, [_innermost(pairs[end]) for end in ("min", "max") if end in pairs])
        for name, pairs in _tensors(content).items()
    ]


def saved_statistics(content: Pairs, where: str) -> dict[str, Mapping[str, NDArray[np.float64]]]:
    """Return name -> what such a file says beside the ranges.

    Raises:
        InputError: something that is no array of finite numbers.
    """
    found: dict[str, Mapping[str, NDArray[np.float64]]] = {}
    for name, pairs in _tensors(content).items():
        kept = {
            what: _array(pairs[what], f"{where}: {what} of tensor '{name}'") for what in _STATISTICS if what in pairs
        }
        if kept:
            found[name] = kept
    return found


def _tensors(content: Pairs) -> dict[str, dict[str, object]]:
    found = dict(content).get(_TENSORS)
    return {name: dict(pairs) for name, pairs in found if _is_object(pairs)} if _is_object(found) else {}


def _is_object(value: object) -> TypeGuard[Pairs]:
    return isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)


def _innermost(value: object) -> object:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _array(value: object, where: str) -> NDArray[np.float64]:
    try:
        found = np.array(cast("list[float]", value), np.float64)
    except (ValueError, TypeError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise InputError(f"{where}: allowed are nested lists of equal length, of finite numbers")
    return found
