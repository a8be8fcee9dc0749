"""A small arithmetic for tests of engine and registry: kernels as functions, and a count of who was called."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter import registry
from tflq.interpreter.registry import Kernel

NAME = "tests"


@dataclass
class Calls:
    """Which operators were lowered and run, in order."""

    lowered: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Arithmetic `tests`: add and double (wrapping), refuse (never lowers); it goes when the test ends."""
    monkeypatch.setattr(registry, "_arithmetics", dict(registry._arithmetics))
    counted = Calls()

    def lower(node: Node, operands: Operands) -> object:
        counted.lowered.append(node.name)
        return node.attributes.integer("factor", 2)

    def refuse(node: Node, operands: Operands) -> object:
        raise UnsupportedError(f"tensor '{operands.input(0).name}' is not to my taste")

    def run_add(factor: int, a: Array, b: Array) -> tuple[Array, ...]:
        counted.run.append("add")
        return (np.asarray(a + b),)

    def run_double(factor: int, a: Array) -> tuple[Array, ...]:
        counted.run.append("double")
        return (np.asarray(a * np.asarray(factor, a.dtype)),)

    kernels = {
        "add": Kernel(lower, run_add),
        "double": Kernel(lower, run_double),
        "refuse": Kernel(refuse, run_double),
    }
    registry.register_arithmetic(registry.Arithmetic(NAME, kernels))
    return counted
