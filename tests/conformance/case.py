"""One generated model with its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.support.nodes import Operand, Result, one_operator
from tflq.errors import TflqError
from tflq.graph import Array, Attribute, DType, Graph, Model
from tflq.interpreter import Engine

Outputs = list[Array]


@dataclass(frozen=True)
class StandIn:
    """A model that judges in the place of a kernel of TFLite that is wrong.

    Attributes:
        model: runs in TFLite.
        inputs: its samples.
        restore: makes the outputs that the case should have from those of the model.
    """

    model: Model
    inputs: tuple[Array, ...]
    restore: Callable[[Outputs], Outputs]


@dataclass(frozen=True)
class Case:
    """A model and what to run it on.

    Attributes:
        model: the operator, and the subgraphs that it runs.
        inputs: one array [S, *shape] for each input.
        state: whether samples follow each other.
        defined: keeps of the outputs (of either side) what TFLite defines; None for all.
        stand_in: judges instead of the model itself.
    """

    model: Model
    inputs: tuple[Array, ...]
    state: str = "independent"
    defined: Callable[[Outputs], Outputs] | None = None
    stand_in: StandIn | None = None


def node_case(
    operator: str,
    operands: Sequence[Operand | None],
    results: Sequence[Result | DType],
    version: int = 1,
    shape: Sequence[int] | None = None,
    **attributes: Attribute,
) -> Case:
    """A case of one node; outputs without a `shape` get the one that tflq computes, or () where tflq refuses it."""
    kinds = [Result(result) if isinstance(result, DType) else result for result in results]
    inputs = tuple(operand.value for operand in operands if operand is not None and not operand.constant)
    if shape is not None:
        return Case(Model([one_operator(operator, operands, kinds, [shape] * len(kinds), version, attributes)]), inputs)
    rough = one_operator(operator, operands, kinds, [()] * len(kinds), version, attributes)
    try:
        ours = Engine(rough).run(inputs)
    except TflqError:
        return Case(Model([rough]), inputs)
    shapes = [_shape(ours[t]) for t in rough.outputs]
    return Case(Model([one_operator(operator, operands, kinds, shapes, version, attributes)]), inputs)


def _shape(samples: Array) -> tuple[int, ...]:
    """The shape of the first sample; of strings, too, and where shapes differ."""
    first = samples[0]
    return first.shape if isinstance(first, np.ndarray) else samples.shape[1:]


def graph_case(graph: Graph, inputs: Sequence[Array], state: str = "independent") -> Case:
    """A case of a graph that is complete."""
    return Case(Model([graph]), tuple(inputs), state)


def defined_by(case: Case, defined: Callable[[Outputs], Outputs]) -> Case:
    """Return the case with a statement of what TFLite defines."""
    return replace(case, defined=defined)
