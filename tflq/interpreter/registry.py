"""Which kernel runs which operator in which arithmetic: explicit tables, modules imported when first needed.

A kernel is two pure functions:

    lower(node, operands) -> params       decides every number once: multipliers, shifts, tables, folded biases;
                                          a frozen dataclass that the emitters write and `explain` shows
    run(params, *arrays) -> tuple         executes them

`run` receives the node's inputs in order, None for an absent one. Every array has one leading axis that the model
does not know: S samples, or 1 where the value is shared by all samples (constants always are). It returns one array
for each output, with that axis. Integers of quantised tensors come and go in their storage type (int8, uint8, ...).

Tensors that are variables (the state of SVDF and LSTM) are inputs like others; `run` returns their new values behind
the outputs, in the order of the inputs. A kernel that needs the value of an operand to decide its params asks for
`operands.constant(i)`: where that value is computed at run time, the engine lowers the node when it is there.

Where a kernel is found, as the table of an arithmetic says it:

- a module of one operator: its functions `lower` and `run`, `samples_last` where it has one, the flags SHARED_RESULT,
  PER_SAMPLE and STATEFUL; the docstring's first line, behind "OPERATOR: ", is the summary, what follows "Source: " the
  source;
- a module of a family: the operator's row in its `KERNELS`, a mapping operator -> Kernel. What the row does not say,
  the module's docstring does, in an entry "OPERATOR: summary. Source: source.";
- a `Kernel` itself, for those that users register.

Kernels of other packages are found through the entry-point group `tflq.kernels`: where an operator or an arithmetic is
missing, the entry points of that name are loaded. Each names a function without arguments, which registers kernels, or
a mapping arithmetic -> operator -> Kernel. `tflq.interpreter.kernel_files` loads such a mapping from a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.graph.quantisation import Affine, Blockwise

ENTRY_POINT_GROUP = "tflq.kernels"

Lower = Callable[[Node, Operands], object]
Run = Callable[..., tuple[Array, ...]]
SamplesLast = Callable[[object, Operands], float | None]


@dataclass(frozen=True)
class Kernel:
    """One operator in one arithmetic: a row of its family's table.

    Attributes:
        lower: decides the params.
        run: executes them.
        summary: the operator's formula or rule in one line, without its name.
        source: where the rule comes from: TFLite's kernel file, or a section of docs/.
        shared_result: whether the result depends on the shapes of the inputs only (SHAPE, RANK): `run` does not look
            at the arrays, and the value is computed once, when the graph is lowered.
        per_sample: whether the shape of the result depends on values (WHERE, UNIQUE): `run` is called with one sample
            at a time.
        stateful: whether two calls may differ (RANDOM_UNIFORM): the node is never folded, and `run` gets one array
            more, the state that it returned behind its outputs at the last call, or None at the first.
        samples_last: whether `run` takes images with samples last in memory (tflq.interpreter.layout) and
            gives such results: the nanoseconds that a sample gains by them, negative where it loses; None if it
            cannot. None in place of the function: the engine hands over samples first.
        module: the module that holds it; the registry fills it in.
    """

    lower: Lower
    run: Run
    summary: str = ""
    source: str = ""
    shared_result: bool = False
    per_sample: bool = False
    stateful: bool = False
    samples_last: SamplesLast | None = None
    module: str = ""


Place = str | Kernel
"""Where a kernel is found: the name of the module that holds it, or the kernel."""


@dataclass(frozen=True)
class Arithmetic:
    """A set of kernels.

    Attributes:
        name: as users write it.
        kernels: operator -> where its kernel is found.
        floating: the arithmetic for nodes whose tensors are all floating-point; None where it has its own.
    """

    name: str
    kernels: dict[str, Place]
    floating: str | None = None


_PACKAGES = {
    "float": "tflq.interpreter.kernels.float",
    "tflite": "tflq.interpreter.kernels.tflite",
    "gap9": "tflq.interpreter.kernels.gap9",
    "tpu_mlir": "tflq.interpreter.kernels.tpu_mlir",
    "nnie": "tflq.interpreter.kernels.nnie",
    "aipu": "tflq.interpreter.kernels.aipu",
    "aipu_float": "tflq.interpreter.kernels.aipu.real",
    "aipu_whitepaper": "tflq.interpreter.kernels.aipu.whitepaper",
    "openvino": "tflq.interpreter.kernels.openvino",
}
_arithmetics: dict[str, Arithmetic] = {}
_kernels: dict[tuple[str, str], Kernel] = {}
_searched: set[str] = set()
"""Names that entry points have been looked for."""


def places(package: str, alone: str = "", **families: str) -> dict[str, Place]:
    """Return the table of a package's operators.

    Args:
        package: the package.
        alone: operators, separated by blanks, each in the module of its name.
        families: module -> operators, separated by blanks, which are rows of its `KERNELS`.
    """
    found: dict[str, Place] = {operator: f"{package}.{operator}" for operator in alone.split()}
    for module, operators in families.items():
        found |= dict.fromkeys(operators.split(), f"{package}.{module}")
    return found


def arithmetics() -> tuple[str, ...]:
    """Return the names of all arithmetics."""
    return tuple(sorted({*_PACKAGES, *_arithmetics}))


def arithmetic(name: str) -> Arithmetic:
    """Return an arithmetic by name.

    Raises:
        UnsupportedError: there is none of that name; the message lists those that exist.
    """
    if name not in _arithmetics:
        if name in _PACKAGES:
            _arithmetics[name] = import_module(_PACKAGES[name]).ARITHMETIC
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
    if new.name in _PACKAGES or new.name in _arithmetics:
        raise TflqError(f"arithmetic '{new.name}' is registered already")
    _arithmetics[new.name] = new


def register_kernel(arithmetic_name: str, operator: str, place: Place) -> None:
    """Add one operator to an arithmetic.

    Args:
        arithmetic_name: the arithmetic.
        operator: TFLite's name in snake case, or the code of a custom operator.
        place: the kernel, or the name of the module that holds it.

    Raises:
        TflqError: the arithmetic has that operator already.
    """
    table = arithmetic(arithmetic_name).kernels
    if operator in table:
        first = table[operator]
        raise TflqError(
            f"operator '{operator}' of arithmetic '{arithmetic_name}' is registered already: "
            f"{first if isinstance(first, str) else _module_of(first)}"
        )
    table[operator] = place


def register_kernels(kernels: Mapping[str, Mapping[str, Place]]) -> None:
    """Add operators to arithmetics: arithmetic -> operator -> kernel.

    Raises:
        UnsupportedError: an arithmetic that does not exist.
        TflqError: an arithmetic that has an operator already.
    """
    for arithmetic_name, operators in kernels.items():
        for operator, place in operators.items():
            register_kernel(arithmetic_name, operator, place)


def has_kernel(arithmetic_name: str, operator: str) -> bool:
    """Whether an arithmetic runs an operator."""
    table = arithmetic(arithmetic_name).kernels
    if operator not in table:
        _load_entry_points(operator, arithmetic_name)
    return operator in table


def kernel(arithmetic_name: str, operator: str) -> Kernel:
    """Return the kernel of an operator.

    Raises:
        UnsupportedError: there is none; the message lists those that exist.
        TflqError: the module that the arithmetic names does not hold it.
    """
    key = (arithmetic_name, operator)
    if key not in _kernels:
        table = arithmetic(arithmetic_name).kernels
        if not has_kernel(arithmetic_name, operator):
            raise UnsupportedError(
                f"operator {operator} has no kernel in arithmetic '{arithmetic_name}'; "
                f"it has {', '.join(sorted(table))}"
            )
        _kernels[key] = _found(operator, table[operator])
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


def _found(operator: str, place: Place) -> Kernel:
    if isinstance(place, Kernel):
        return replace(place, module=_module_of(place))
    module = import_module(place)
    row: Kernel | None = getattr(module, "KERNELS", {}).get(operator)
    if row is not None:
        summary, source = _described(operator, module.__doc__ or "")
        return replace(row, module=place, summary=row.summary or summary, source=row.source or source)
    if not (hasattr(module, "lower") and hasattr(module, "run")):
        raise TflqError(f"module {place} has neither a row for '{operator}' in KERNELS nor lower and run")
    return _of_module(module)


def _described(operator: str, text: str) -> tuple[str, str]:
    """Return the summary and the source in the entry that the docstring of a family has for an operator."""
    for entry in re.split(r"\n(?=\n|[A-Z\d_]+: )", text):
        name, _, words = " ".join(entry.split()).partition(": ")
        summary, _, source = words.partition(" Source: ")
        if name == operator.upper() and source:
            return summary.rstrip("."), source.rstrip(".")
    return "", ""


def _of_module(module: ModuleType) -> Kernel:
    text = module.__doc__ or ""
    first = text.partition("\n")[0].rstrip(".")
    name, _, rest = first.partition(": ")
    return Kernel(
        module.lower,
        module.run,
        rest if name.isupper() else first,
        " ".join(text.partition("Source: ")[2].split()).rstrip("."),
        shared_result=getattr(module, "SHARED_RESULT", False),
        per_sample=getattr(module, "PER_SAMPLE", False),
        stateful=getattr(module, "STATEFUL", False),
        samples_last=getattr(module, "samples_last", None),
        module=module.__name__,
    )


def _module_of(row: Kernel) -> str:
    return row.module or row.lower.__module__


def _load_entry_points(*names: str) -> None:
    """Let other packages register what has one of these names; each name is looked for once."""
    wanted = set(names) - _searched
    if not wanted:
        return
    _searched.update(wanted)
    from importlib.metadata import entry_points  # 15 ms that only a missing kernel needs

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name in wanted:
            try:
                register_found(entry.load())
            except Exception as error:
                raise TflqError(f"kernels '{entry.name}' of {entry.value}: {error}") from error


def register_found(found: object) -> None:
    """Register what an entry point or a file names: a function that does so, or arithmetic -> operator -> kernel.

    Raises:
        TflqError: it is neither, and what `register_kernels` raises.
    """
    if callable(found):
        found()
    elif isinstance(found, Mapping) and all(_is_table(table) for table in found.values()):
        register_kernels(found)
    else:
        raise TflqError("a function without arguments or a mapping arithmetic -> operator -> Kernel is needed")


def _is_table(table: object) -> bool:
    return isinstance(table, Mapping) and all(isinstance(place, (str, Kernel)) for place in table.values())
