"""TPU-MLIR's names of tensors and its tables: ranges of tensors, modes of layers (docs/tpu_mlir.md, 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.converters.onnx import OnnxGraph, OnnxNode
from tflq.errors import FormatError
from tflq.units import finite

_SIX_GATE = "HardSigmoid"
_GELU = ("Mul", "Mul", "Add", "Erf")
_UNNAMED = ("Ceil",)
"""Operators whose results TPU-MLIR calls as ONNX does."""


def tool_names(network: OnnxGraph) -> dict[str, str]:
    """Return value -> `<value>_<op type>`; graph inputs keep their names.

    x * HardSigmoid(x) becomes one operator of TPU-MLIR, HardSwish.
    """
    writers = network.producers
    names = {value.name: value.name for value in network.inputs}
    gelus = {last.outputs[0] for last in writers.values() if _ends_gelu(last, writers)}
    for value, node in writers.items():
        kinds = {writers[operand].op_type for operand in node.inputs if operand in writers}
        op_type = "HardSwish" if node.op_type == "Mul" and _SIX_GATE in kinds else node.op_type
        op_type = "GELU" if value in gelus else op_type
        names[value] = value if op_type in _UNNAMED else f"{value}_{op_type}"
    return names


def _ends_gelu(node: OnnxNode, writers: Mapping[str, OnnxNode], path: Sequence[str] = _GELU) -> bool:
    """Whether a node is the last of x * (1 + erf(x / sqrt 2)) * 0.5; x may come from an Add or Mul, too."""
    if node.op_type != path[0]:
        return False
    return len(path) == 1 or any(_ends_gelu(writers[v], writers, path[1:]) for v in node.inputs if v in writers)


def tensor_names(network: OnnxGraph) -> dict[int, str]:
    """Return tensor of the model -> TPU-MLIR's name of the value that holds it."""
    named = tool_names(network)
    return {t: named[value] for t, value in network.values.items() if value in named}


_MOVERS = ("Transpose", "Reshape", "Identity")


@dataclass(frozen=True)
class Permutations:
    """Where ONNX has a Transpose that the model does not have: TPU-MLIR permutes quantized values, not reals.

    Attributes:
        operands: (tensor that an operator computes, operand that reaches it permuted) -> TPU-MLIR's name of what
            reaches it.
        results: tensors that are permuted behind the operator that computes them.
        cores: tensor that is permuted or reshaped behind its operator -> TPU-MLIR's name in front of that.
    """

    operands: Mapping[tuple[int, int], str] = field(default_factory=dict)
    results: frozenset[int] = frozenset()
    cores: Mapping[int, str] = field(default_factory=dict)


def permutations(network: OnnxGraph) -> Permutations:
    """Return where values are permuted between the operators of the model."""
    writers, named = network.producers, tool_names(network)
    own = {value: t for t, value in network.values.items()}
    operands, results, cores = dict[tuple[int, int], str](), set[int](), dict[int, str]()

    def back(value: str, is_first: bool) -> tuple[str, bool]:
        """Go back through what moves data, to another tensor of the model or to an operator; was it permuted?"""
        node, permuted = writers.get(value), False
        while node is not None and node.op_type in _MOVERS and (is_first or value not in own):
            permuted, value, is_first = permuted or node.op_type == "Transpose", node.inputs[0], False
            node = writers.get(value)
        return value, permuted

    ends = {back(value, True)[0] for value in network.values.values()}
    for t, value in network.values.items():
        core, permuted = back(value, True)
        if core in own and core != value:
            operands.update({(t, own[core]): named[value]} if permuted else {})
            continue
        if core != value and core in named:
            cores[t] = named[core]
            results.update({t} if permuted else ())
        nodes = [writers[core]] if core in writers else []
        for node in nodes:
            for x in node.inputs:
                source, turned = back(x, False)
                operands.update({(t, own[source]): named[x]} if turned and source in own else {})
                nodes += [writers[source]] if source in writers and source not in ends else []
    return Permutations(operands, frozenset(results), cores)


_FIELDS = "name threshold min max"
_SECTIONS = ("#int4_th", "#asym_op")
_HEADER = "# op_name    threshold    min    max"


@dataclass(frozen=True)
class CalibrationLine:
    """The calibrated range of one tensor.

    Attributes:
        name: as TPU-MLIR calls the tensor.
        threshold: largest magnitude that the quantized values reach, above 0.
        minimum: its sign decides between uint8 and int8; the asymmetric mode uses its value.
        maximum: the asymmetric mode uses it.
    """

    name: str
    threshold: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class CalibrationTable:
    """The lines of a table, in the order of the network; each name once."""

    lines: tuple[CalibrationLine, ...]

    def find(self, name: str) -> CalibrationLine | None:
        """Return the line of a tensor."""
        return next((line for line in self.lines if line.name == name), None)


def format_calibration_table(table: CalibrationTable) -> str:
    """Return the text: numbers with all digits that they need, never with an exponent."""
    rows = (
        f"{line.name} {_number(line.threshold)} {_number(line.minimum)} {_number(line.maximum)}" for line in table.lines
    )
    return "\n".join([_HEADER, *rows, ""])


def parse_calibration_table(text: str, source: str = "") -> CalibrationTable:
    """Read a table; lines that begin with # are comments.

    Args:
        text: of the file.
        source: the file's name, for messages.

    Raises:
        FormatError: with the number of the line: another number of fields, no number, a threshold that is not positive,
            min above max, a name twice, or a section that is not read (#int4_th, #asym_op).
    """
    lines: dict[str, CalibrationLine] = {}
    for number, row in enumerate(text.splitlines(), 1):
        where = f"{source}: line {number}" if source else f"line {number}"
        if row.strip().startswith(_SECTIONS):
            raise FormatError(f"{where}: section {row.strip().split()[0]} is not read; remove it and what follows")
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        line = _parse_line(row, where)
        if line.name in lines:
            raise FormatError(f"{where}: tensor '{line.name}' has a line already")
        lines[line.name] = line
    return CalibrationTable(tuple(lines.values()))


def _parse_line(row: str, where: str) -> CalibrationLine:
    fields = row.split()
    if len(fields) != 4:
        raise FormatError(f"{where}: found {len(fields)} fields, a line has 4: {_FIELDS}")
    numbers = []
    for text, what in zip(fields[1:], _FIELDS.split()[1:], strict=True):
        number = finite(text)
        if number is None:
            raise FormatError(f"{where}: {what} of '{fields[0]}' is '{text}', a finite number is needed")
        numbers.append(number)
    threshold, minimum, maximum = numbers
    if threshold <= 0:
        raise FormatError(f"{where}: threshold of '{fields[0]}' is {fields[1]}; it must be above 0")
    if minimum > maximum:
        raise FormatError(f"{where}: min of '{fields[0]}' is {fields[2]}, above max {fields[3]}")
    return CalibrationLine(fields[0], threshold, minimum, maximum)


def _number(value: float) -> str:
    return np.format_float_positional(value, trim="0")


def few(names: Iterable[str]) -> str:
    """Return the first names of many, for a message."""
    listed = list(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


MODES = ("INT8", "F16", "F32")


def format_quantisation_table(modes: Mapping[str, str]) -> str:
    """Return the text of a table: layer -> mode."""
    return "\n".join(["# op_name   quantize_mode", *(f"{name} {mode}" for name, mode in modes.items()), ""])
