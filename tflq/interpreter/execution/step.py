"""One node of a program, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.graph import Node
from tflq.interpreter.execution.deferred import DeferredNode
from tflq.interpreter.execution.values import Value
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Step:
    """One node of a program.

    Attributes:
        index: of the node.
        node: lowered.
        kernel: None for what the engine itself executes.
        deferred: lowers the node at run time, for other operands and shapes than are known; None without a kernel.
        shapes: (position, shape) of the computed inputs that the integers were decided for: the shapes that the file
            states, which may be wrong; None where they are decided when the node runs.
        release: tensors that nobody needs after this step.
    """

    index: int
    node: Node
    kernel: Kernel | None
    deferred: DeferredNode | None
    shapes: tuple[tuple[int, tuple[int, ...]], ...] | None
    release: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The tensors that it reads and writes."""
        return (*self.node.inputs, *self.node.outputs)

    def fits(self, operands: Sequence[Value | None]) -> bool:
        """Whether operands have the shapes that the integers were decided for."""
        if self.shapes is None:
            return False
        for position, shape in self.shapes:
            value = operands[position]
            if not (isinstance(value, np.ndarray) and value.shape[1:] == shape):
                return False
        return True
