"""Which module runs which operator in which arithmetic: explicit tables, modules imported when first needed.

A kernel is a module with two pure functions:

    lower(node, operands) -> integers     decides every number once: multipliers, shifts, tables, folded biases;
                                          a frozen dataclass that the emitters write and `explain` shows
    run(integers, *arrays) -> tuple       executes them

`run` receives the node's inputs in order, None for an absent one. Every array has one leading axis that the model
does not know: S samples, or 1 where the value is shared by all samples (constants always are). It returns one array
for each output, with that axis. Integers of quantised tensors come and go in their storage type (int8, uint8, ...).

A module with `SHARED_RESULT = True` gives a result that depends on the shapes of its inputs only (SHAPE, RANK): its
`run` does not look at the arrays, and the value is computed once, when the graph is lowered. One with
`PER_SAMPLE = True` gives a result whose shape depends on values (WHERE, UNIQUE): its `run` is called with one sample at
a time. One with `STATEFUL = True` gives another result at each call (RANDOM_UNIFORM) and is never folded: its `run`
gets one array more, the state that it returned behind its outputs at the last call, or None at the first.

A module may have a third function, for images with samples last in memory (tflq.interpreter.execution.layout):

    samples_last(integers, operands) -> gain    whether `run` takes such images and gives such results: the nanoseconds
                                                that a sample gains by them, negative where it loses; None if it cannot

Without it, the engine hands over samples first.

Tensors that are variables (the state of SVDF and LSTM) are inputs like others; `run` returns their new values behind
the outputs, in the order of the inputs. A kernel that needs the value of an operand to decide its integers asks for
`operands.constant(i)`: where that value is computed at run time, the engine lowers the node when it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.graph.quantisation import Affine, Blockwise

Lower = Callable[[Node, Operands], object]
Run = Callable[..., tuple[Array, ...]]
SamplesLast = Callable[[object, Operands], float | None]


@dataclass(frozen=True)
class Kernel:
    """The two functions of one operator in one arithmetic.

    Attributes:
        lower: decides the integers.
        run: executes them.
        module: the module that holds them.
        shared_result: whether the result depends on shapes only.
        per_sample: whether the shape of the result depends on values.
        stateful: whether two calls may differ.
        samples_last: what images with samples last gain, where it takes them; None if it never does.
    """

    lower: Lower
    run: Run
    module: str
    shared_result: bool = False
    per_sample: bool = False
    stateful: bool = False
    samples_last: SamplesLast | None = None


@dataclass(frozen=True)
class Arithmetic:
    """A set of kernels.

    Attributes:
        name: as users write it.
        kernels: operator -> module.
        floating: the arithmetic for nodes whose tensors are all floating-point; None where it has its own.
    """

    name: str
    kernels: dict[str, str]
    floating: str | None = None


_PACKAGES = {
    "float": "tflq.interpreter.kernels.float",
    "tflite": "tflq.interpreter.kernels.tflite",
    "gap9": "tflq.interpreter.kernels.gap9",
    "tpu_mlir": "tflq.interpreter.kernels.tpu_mlir",
    "nnie": "tflq.interpreter.kernels.nnie",
    "aipu": "tflq.interpreter.kernels.aipu",
    "aipu_whitepaper": "tflq.interpreter.kernels.aipu.whitepaper",
    "openvino": "tflq.interpreter.kernels.openvino",
}
_arithmetics: dict[str, Arithmetic] = {}
_kernels: dict[tuple[str, str], Kernel] = {}


def arithmetics() -> tuple[str, ...]:
    """Return the names of all arithmetics."""
    return tuple(sorted({*_PACKAGES, *_arithmetics}))


def arithmetic(name: str) -> Arithmetic:
    """Return an arithmetic by name.

    Raises:
        UnsupportedError: there is none of that name; the message lists those that exist.
    """
    if name not in _arithmetics:
        if name not in _PACKAGES:
            raise UnsupportedError(f"no arithmetic is called '{name}'; there are {', '.join(arithmetics())}")
        _arithmetics[name] = import_module(_PACKAGES[name]).ARITHMETIC
    return _arithmetics[name]


def register_arithmetic(new: Arithmetic) -> None:
    """Add an arithmetic.

    Raises:
        TflqError: one of that name exists.
    """
    if new.name in _PACKAGES or new.name in _arithmetics:
        raise TflqError(f"arithmetic '{new.name}' is registered already")
    _arithmetics[new.name] = new


def register_kernel(arithmetic_name: str, operator: str, module: str) -> None:
    """Add one operator to an arithmetic.

    Raises:
        TflqError: the arithmetic has that operator already.
    """
    table = arithmetic(arithmetic_name).kernels
    if operator in table:
        raise TflqError(
            f"operator '{operator}' of arithmetic '{arithmetic_name}' is registered already: {table[operator]}"
        )
    table[operator] = module


def has_kernel(arithmetic_name: str, operator: str) -> bool:
    """Whether an arithmetic runs an operator."""
    return operator in arithmetic(arithmetic_name).kernels


def kernel(arithmetic_name: str, operator: str) -> Kernel:
    """Return the kernel of an operator.

    Raises:
        UnsupportedError: there is none; the message lists those that exist.
    """
    key = (arithmetic_name, operator)
    if key not in _kernels:
        table = arithmetic(arithmetic_name).kernels
        if operator not in table:
            raise UnsupportedError(
                f"operator {operator} has no kernel in arithmetic '{arithmetic_name}'; "
                f"it has {', '.join(sorted(table))}"
            )
        module = import_module(table[operator])
        _kernels[key] = Kernel(
            module.lower,
            module.run,
            table[operator],
            shared_result=getattr(module, "SHARED_RESULT", False),
            per_sample=getattr(module, "PER_SAMPLE", False),
            stateful=getattr(module, "STATEFUL", False),
            samples_last=getattr(module, "samples_last", None),
        )
    return _kernels[key]


def kernel_name(node: Node) -> str:
    """Return the name under which a node's kernel is found: its operator, or the code of a custom one."""
    return node.custom_code or node.operator if node.operator == "custom" else node.operator


def arithmetic_of(node: Node, operands: Operands, default: str) -> str:
    """Return the arithmetic that runs a node: its own, the default, or the default's one for floating point."""
    if node.arithmetic is not None:
        return node.arithmetic
    floating = arithmetic(default).floating
    return floating if floating is not None and _is_floating(operands) else default


def _is_floating(operands: Operands) -> bool:
    tensors = [t for t in operands.inputs + operands.outputs if t is not None]
    quantised = any(isinstance(t.quantisation, (Affine, Blockwise)) and t.dtype.is_integer for t in tensors)
    first = operands.optional(0)
    return not quantised and all(t.dtype.is_floating for t in (*operands.outputs, first) if t is not None)
