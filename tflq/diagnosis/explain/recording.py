"""Recording of one node: its kernel runs again on one sample, with its exact rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum
from inspect import Parameter, signature
from typing import Any

import numpy as np

from tflq.errors import TflqError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.execution.deferred import Deferred, DeferredNode
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.recording.operations import Operations
from tflq.interpreter.recording.primitive import Ids, noting_tables
from tflq.interpreter.recording.tape import Kind, Tape
from tflq.interpreter.recording.traced import Traced, number
from tflq.interpreter.registry import Kernel, kernel, kernel_name

_PACKED = ("tflq.interpreter.accumulate", "tflq.interpreter.numerics.requantize", Window.__module__)
"""Modules whose records contain packed weights, maps that do not run here, or sizes that no formula reads."""


class RecordedNode:
    """A tape of one node.

    Attributes:
        tape: Recorded operations.
        source: Place of the kernel's formula: the "Source:" of its docstring, and its page of docs/.
        failure: Reason why the results are not recorded; empty if they are.
    """

    def __init__(
        self,
        node: Node,
        operands: Operands,
        inputs: Sequence[Array | None],
        recorder: type[Operations] = Operations,
    ) -> None:
        """Run the kernel.

        Args:
            node: lowered.
            operands: Tensors of the node.
            inputs: the arrays of one sample, dtype[*shape]; None for an absent operand.
            recorder: Class that stores the operations.
        """
        self.tape = Tape()
        self.failure = ""
        self._results: Sequence[Any] = ()
        implementation = kernel(node.arithmetic or "", kernel_name(node))
        self.source = implementation.source or implementation.module
        arrays = [None if x is None else x[None] for x in inputs] + [None] * implementation.stateful
        params = _params_for(node, operands, implementation, arrays)
        operations = recorder(self.tape, lambda: _tables(node, operands, implementation))
        names = _labels(implementation.run, operands)
        try:
            with np.errstate(all="ignore"):
                given = [
                    None if x is None else _source(operations, operands, i, x, names[i]) for i, x in enumerate(arrays)
                ]
                named = _named(params, "", lambda v, name: operations.source(Kind.PARAM, v, name))
                with operations.recording():
                    self._results = implementation.run(named, *given)
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            TflqError,
        ) as error:
            self.failure = f"{type(error).__name__}: {error}"

    @property
    def results(self) -> int:
        """Number of arrays that the kernel returned: its outputs, then new values of variables."""
        return len(self._results)

    def numbers(self, output: int) -> Ids | None:
        """Return the numbers of an output's elements, [1, *shape]; None if it was not recorded."""
        result = self._results[output] if output < len(self._results) else None
        return result.ids if isinstance(result, Traced) else None

    def element(self, output: int, index: Sequence[int]) -> int | None:
        """Return the number of an element of an output; None if it was not recorded."""
        numbers = self.numbers(output)
        return None if numbers is None else int(numbers[0][tuple(index)])


def _params_for(node: Node, operands: Operands, found: Kernel, arrays: list[Array | None]) -> object:
    """Return the params of a node; lower it again if the input shapes differ from the shapes it was lowered for."""
    tensors = zip(operands.inputs, arrays, strict=False)
    fits = all(t is None or x is None or t.is_constant or x.shape[1:] == t.shape for t, x in tensors)
    if fits and not isinstance(node.params, Deferred):
        return node.params
    return DeferredNode(node, operands, found).params_for(arrays)


def _tables(node: Node, operands: Operands, found: Kernel) -> list[tuple[Array, Callable[[Any], Any]]]:
    """Return the tables of a lowered node, with the functions that compute their entries."""
    with noting_tables() as tables:
        try:
            found.lower(node, operands)
        except TflqError:  # nodes of a target may be lowered by its quantizer only
            return []
    return tables


def _source(operations: Operations, operands: Operands, position: int, x: Array, label: str) -> Any:
    tensor = operands.inputs[position] if position < len(operands.inputs) else None
    return operations.source(Kind.INPUT, x, label, f"of '{tensor.name}'" if tensor else "", position)


def _labels(run: Callable[..., Any], operands: Operands) -> dict[int, str]:
    """Name a node's inputs by the parameters of its kernel, `weights` or `bias`; the remaining ones by number."""
    words = ("input", "second input", "third input", "fourth input")
    names = [p.name for p in signature(run).parameters.values() if p.kind is not Parameter.VAR_POSITIONAL][1:]
    labels = {}
    for i in range(len(operands.inputs) + 1):
        name = names[i] if i < len(names) else ""
        own = name.replace("_", " ") if len(name) > 1 and name != "arrays" else ""
        labels[i] = own or (words[i] if i < len(words) else f"input {i + 1}")
    return labels


def _named(value: Any, name: str, source: Callable[[Any, str], Any]) -> Any:
    """Return params with numbers that are named after their fields."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return source(np.asarray(value), name)
    if isinstance(value, (int, float)) and not isinstance(value, (bool, Enum)):
        return number(value, source(np.asarray(value), name).ids)
    if is_dataclass(value) and not isinstance(value, type) and not type(value).__module__.startswith(_PACKED):
        made = copy(value)
        for part in fields(value):
            inner = _named(getattr(value, part.name), part.name.replace("_", " "), source)
            object.__setattr__(made, part.name, inner)
        return made
    if type(value) in (tuple, list):
        return type(value)(_named(item, name, source) for item in value)
    return {k: _named(v, name, source) for k, v in value.items()} if type(value) is dict else value
