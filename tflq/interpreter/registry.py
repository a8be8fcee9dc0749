"""Kernels by arithmetic and operator.

A kernel is two pure functions:

    lower(node, operands) -> params       decides every number once: multipliers, shifts, tables, folded biases;
                                          a frozen dataclass that the emitters write and `explain` shows
    run(params, *arrays) -> tuple         executes them

`run` receives the node's inputs in order, None for an absent one. Every array has one leading axis that the model
does not know: S samples, or 1 if the value is shared by all samples (constants always are). It returns one array for
each output, with that axis. Integers of quantized tensors are passed and returned in their storage type (int8, uint8,
...).

Tensors that are variables (the state of SVDF and LSTM) are ordinary inputs; `run` returns their new values after the
outputs, in the order of the inputs. A kernel that needs the value of an operand to decide its params calls
`operands.constant(i)`: if that value is computed at run time, the engine lowers the node when it is there.

A module of kernels ends with its table `KERNELS`, operator -> Kernel. `kernels/<arithmetic>/operators.py` joins the
tables of an arithmetic; it is imported when the arithmetic is first used.

Kernels of other packages are registered through the entry-point group `tflq.kernels`: if an operator or an arithmetic
is missing, the entry points of that name are loaded. Each names a function without arguments, which registers kernels,
or a mapping arithmetic -> operator -> Kernel. `tflq.interpreter.kernel_files` loads such a mapping from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module

from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Array, Graph, Node, Operands
from tflq.graph.quantization import Affine, Blockwise
from tflq.plugins import find_entry_points

ENTRY_POINT_GROUP = "tflq.kernels"

Lower = Callable[[Node, Operands], object]
Run = Callable[..., tuple[Array, ...]]
SamplesLast = Callable[[object, Operands], float | None]


@dataclass(frozen=True)
class Kernel:
    """One operator in one arithmetic.

    Attributes:
        lower: decides the params.
        run: executes them.
        summary: the operator's formula or rule in one line, without its name.
        source: Source of the rule: TFLite's kernel file, or a section of docs/.
        shared_result: whether the result depends on the shapes of the inputs only (SHAPE, RANK): `run` does not look
            at the arrays, and the value is computed once, when the graph is lowered.
        per_sample: whether the shape of the result depends on values (WHERE, UNIQUE): `run` is called with one sample
            at a time.
        stateful: whether two calls may differ (RANDOM_UNIFORM): the node is never folded, and `run` gets one array
            more, the state that it returned after its outputs at the last call, or None at the first.
        samples_last: whether `run` takes images with samples last in memory (tflq.interpreter.layout) and returns such
            results: the nanoseconds that a sample gains by them, negative if it loses; None if it cannot. None in place
            of the function: the engine hands over samples first.
        reads_scales: Whether scales enter; if not (RESHAPE, MAXIMUM), any scale is accepted.
    """

    lower: Lower
    run: Run
    summary: str = ""
    source: str = ""
    shared_result: bool = False
    per_sample: bool = False
    stateful: bool = False
    samples_last: SamplesLast | None = None
    reads_scales: bool = True

    @property
    def module(self) -> str:
        """Name of the module that defines `run`."""
        function: Callable[..., object] = self.run
        while isinstance(function, partial):
            function = function.func
        return function.__module__


@dataclass(frozen=True)
class Arithmetic:
    """A set of kernels.

    Attributes:
        name: Name as users write it.
        kernels: operator -> kernel.
        floating: the arithmetic for nodes with floating-point tensors only; None if it has its own.
        leave: Function from a stored graph to the nodes that run in another arithmetic: index -> its name; None if
            all nodes run in this one.
    """

    name: str
    kernels: dict[str, Kernel]
    floating: str | None = None
    leave: Callable[[Graph], Mapping[int, str]] | None = None


_PACKAGES = {
    "float": "float",
    "tflite": "tflite",
    "gap9": "gap9",
    "tpu_mlir": "tpu_mlir",
    "nnie": "nnie",
    "aipu": "aipu",
    "aipu_float": "aipu.real",
    "aipu_whitepaper": "aipu.whitepaper",
    "openvino": "openvino",
}
RUNTIMES = ("litert-optimized", "xnnpack", "tflm", "cmsis-nn", "cmsis-nn-single", "tosa")
"""Arithmetics of other runtimes of a .tflite file than TFLite's reference kernels (docs/guides/runtimes.md)."""
_arithmetics: dict[str, Arithmetic] = {}
_searched: set[str] = set()
"""Names that entry points have been looked for."""


def without_scales(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Return the kernels with `reads_scales` off."""
    return {operator: replace(kernel, reads_scales=False) for operator, kernel in kernels.items()}


def arithmetics() -> tuple[str, ...]:
    """Return the names of all arithmetics."""
    return tuple(sorted({*_PACKAGES, *RUNTIMES, *_arithmetics}))


def arithmetic(name: str) -> Arithmetic:
    """Return an arithmetic by name.

    Raises:
        UnsupportedError: there is none of that name; the message lists the existing ones.
    """
    if name not in _arithmetics:
        if name in _PACKAGES:
            _arithmetics[name] = import_module(f"tflq.interpreter.kernels.{_PACKAGES[name]}.operators").ARITHMETIC
        elif name in RUNTIMES:
            _arithmetics.update(import_module("tflq.interpreter.kernels.tflite.runtimes").ARITHMETICS)
        else:
            _load_entry_points(name)
    if name not in _arithmetics:
        raise UnsupportedError(f"no arithmetic is called '{name}'; there are {', '.join(arithmetics())}")
    return _arithmetics[name]


def register_arithmetic(new: Arithmetic) -> None:
    """Add an arithmetic.

    Raises:
        TflqError: one of that name exists.
    """
    if new.name in (*_PACKAGES, *RUNTIMES, *_arithmetics):
        raise TflqError(f"arithmetic '{new.name}' is registered already")
    _arithmetics[new.name] = new


def register_kernel(arithmetic_name: str, operator: str, new: Kernel) -> None:
    """Add one operator to an arithmetic.

    Args:
        arithmetic_name: the arithmetic.
        operator: TFLite's name in snake case, or the code of a custom operator.
        new: Kernel of the operator.

    Raises:
        TflqError: the arithmetic has that operator already.
    """
    table = arithmetic(arithmetic_name).kernels
    if operator in table:
        raise TflqError(
            f"operator '{operator}' of arithmetic '{arithmetic_name}' is registered already: {table[operator].module}"
        )
    table[operator] = new


def register_kernels(kernels: Mapping[str, Mapping[str, Kernel]]) -> None:
    """Add operators to arithmetics: arithmetic -> operator -> kernel.

    Raises:
        UnsupportedError: an arithmetic that does not exist.
        TflqError: an arithmetic that has an operator already.
    """
    for arithmetic_name, operators in kernels.items():
        for operator, new in operators.items():
            register_kernel(arithmetic_name, operator, new)


def has_kernel(arithmetic_name: str, operator: str) -> bool:
    """Whether an arithmetic runs an operator."""
    table = arithmetic(arithmetic_name).kernels
    if operator not in table:
        _load_entry_points(operator, arithmetic_name)
    return operator in table


def kernel(arithmetic_name: str, operator: str) -> Kernel:
    """Return the kernel of an operator.

    Raises:
        UnsupportedError: there is none; the message lists the existing ones.
    """
    table = arithmetic(arithmetic_name).kernels
    if not has_kernel(arithmetic_name, operator):
        raise UnsupportedError(
            f"operator {operator} has no kernel in arithmetic '{arithmetic_name}'; it has {', '.join(sorted(table))}"
        )
    return table[operator]


def kernel_name(node: Node) -> str:
    """Return the name under which a node's kernel is registered: its operator, or the code of a custom one."""
    return node.custom_code or node.operator if node.operator == "custom" else node.operator


def arithmetic_of(node: Node, operands: Operands, default: str) -> str:
    """Return the arithmetic that runs a node: its own, the default, or the default's one for floating point."""
    if node.arithmetic is not None:
        return node.arithmetic
    floating = arithmetic(default).floating
    return floating if floating is not None and _is_floating(operands) else default


def _is_floating(operands: Operands) -> bool:
    tensors = [t for t in operands.inputs + operands.outputs if t is not None]
    quantized = any(isinstance(t.quantization, (Affine, Blockwise)) and t.dtype.is_integer for t in tensors)
    first = operands.optional(0)
    return not quantized and all(t.dtype.is_floating for t in (*operands.outputs, first) if t is not None)


def _load_entry_points(*names: str) -> None:
    """Let other packages register the kernels or arithmetics of these names; each name is looked for once."""
    wanted = set(names) - _searched
    if not wanted:
        return
    _searched.update(wanted)
    for entry in find_entry_points(ENTRY_POINT_GROUP):
        if entry.name in wanted:
            try:
                register_found(entry.load())
            except Exception as error:
                raise TflqError(f"kernels '{entry.name}' of {entry.value}: {error}") from error


def register_found(found: object) -> None:
    """Register the object of an entry point or a file: a function that does so, or arithmetic -> operator -> kernel.

    Raises:
        TflqError: it is neither; or an error of `register_kernels`.
    """
    if callable(found):
        found()
    elif isinstance(found, Mapping) and all(_is_table(table) for table in found.values()):
        register_kernels(found)
    else:
        raise TflqError("a function without arguments or a mapping arithmetic -> operator -> Kernel is needed")


def _is_table(table: object) -> bool:
    return isinstance(table, Mapping) and all(isinstance(row, Kernel) for row in table.values())
