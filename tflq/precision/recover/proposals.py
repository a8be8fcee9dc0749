"""Recovery of one filter: propose, quantize by the target itself, judge, keep (docs/guides/recover.md, steps 4 to 7).

A filter of the float network in a target's graph: where its weights stand there, in which layout, on which grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.graph import ABSENT, Affine, Graph, Node
from tflq.graph.float_view import dequantize
from tflq.parallel.executions import Execution
from tflq.precision.recover.descent import Grid, Rounding, find_neighbors, find_rounding
from tflq.precision.recover.filters import Filter
from tflq.precision.recover.judge import DECIMALS, Judge
from tflq.precision.recover.moments import Moments
from tflq.precision.recover.records import ALL, BIAS, NOTHING, WEIGHTS, WORSE, LayerRecovery

_PASSED = 3
"""Nodes behind a filter that may write its result: an activation, a change of type, a reshape."""

_SLACK = 1e-4
"""Share of a scale that the target's own arithmetic may add to half a step of rounding."""


@dataclass(frozen=True)
class Placed:
    """A filter's weights in a target's graph.

    Attributes:
        tensor: index of the weights.
        name: of that tensor; they are the same weights in another graph of the target where it is the same.
        axes: order of the target's axes longer than 1, in the file's order.
        bits: of its quantized values.
    """

    tensor: int
    name: str
    axes: tuple[int, ...]
    bits: int

    def read(self, graph: Graph, of: Filter) -> NDArray[np.int64]:
        """Return the quantized weights less their zero point, in the file's shape: int64.

        Raises:
            ValueError: the target's graph is another one now.
        """
        if self.tensor >= len(graph.tensors) or graph.tensors[self.tensor].name != self.name:
            raise ValueError(f"the target's graph holds weights '{self.name}' no longer")
        tensor = graph.tensors[self.tensor]
        assert tensor.data is not None
        q = tensor.data.astype(np.int64) - tensor.affine.along(len(tensor.shape))[1]
        return _in_file_order(q, self.axes, of.shape)

    def grid(self, graph: Graph, of: Filter) -> Grid:
        """Return what the target's own rounding made of the weights."""
        tensor = graph.tensors[self.tensor]
        q = self.read(graph, of)
        scales = np.broadcast_to(tensor.affine.along(len(tensor.shape))[0].astype(np.float64), tensor.shape)
        per_weight = of.matrix(_in_file_order(scales, self.axes, of.shape))
        matrix = np.ascontiguousarray(of.matrix(q)).astype(np.float64)
        largest = max(1, int(q.max()) if -q.min() == q.max() + 1 else int(np.abs(q).max()))
        least = -largest - int(-q.min() == q.max() + 1)
        return Grid(largest, least, not tensor.affine.is_per_axis, matrix, per_weight[:, 0].copy())


def place(graph: Graph, of: Filter, weights: NDArray[np.float32], output: int | None) -> Placed | str:
    """Find the weights of a filter in a target's graph; in words why they cannot be recovered.

    Args:
        graph: the target's.
        of: the filter.
        weights: the model's own, float32.
        output: the target's tensor that means the filter's result; None where there is none.
    """
    found = _weights_of(graph, of, output)
    if found is None:
        return "the target's graph has no such layer"
    tensor = graph.tensors[found]
    quantization = tensor.quantization
    if not isinstance(quantization, Affine) or tensor.data is None or not tensor.dtype.is_integer:
        return "the target keeps its weights in another form than quantized values with a scale"
    long = [n for n in tensor.shape if n != 1]
    wanted = [n for n in of.shape if n != 1]
    real = dequantize(tensor.data, quantization).astype(np.float64)
    step = np.broadcast_to(quantization.along(len(tensor.shape))[0].astype(np.float64), tensor.shape)
    for axes in permutations(range(len(long))):
        if [long[a] for a in axes] != wanted:
            continue
        near = np.abs(_in_file_order(real, axes, of.shape) - weights)
        if (near <= (0.5 + _SLACK) * _in_file_order(step, axes, of.shape)).all():
            return Placed(found, tensor.name, axes, quantization.bits)
    return "the target changes its weights by more than rounding to nearest (it joins, cuts, scales or clips them)"


def _in_file_order(array: NDArray[Any], axes: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.transpose(array.reshape([n for n in array.shape if n != 1]), axes).reshape(shape)


def _weights_of(graph: Graph, of: Filter, output: int | None) -> int | None:
    """Return the constant weights of the node that computes the filter: by its name, else by what it writes."""
    for node in graph.nodes:
        if node.name == of.node.name and _has_weights(graph, node):
            return node.inputs[1]
    writers = {t: n for n in graph.nodes for t in n.outputs}
    for _ in range(_PASSED):
        writer = None if output is None else writers.get(output)
        if writer is None or _has_weights(graph, writer):
            return None if writer is None else writer.inputs[1]
        output = writer.inputs[0] if writer.inputs else None
    return None


def _has_weights(graph: Graph, node: Node) -> bool:
    tensor = graph.tensors[node.inputs[1]] if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
    return tensor is not None and tensor.is_constant and len(tensor.shape) > 1


Constants = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Weights and bias of a filter, in the file's layout."""


@dataclass(frozen=True)
class Step:
    """The float network as it stands, and under the target."""

    graph: Graph
    execution: Execution


@dataclass(frozen=True)
class Recovered:
    """What was done to a filter.

    Attributes:
        layer: in figures.
        constants: its new ones; None where it keeps its own.
        is_local: whether nothing behind the layer took part: its own result judged it, not the network's outputs.
    """

    layer: LayerRecovery
    constants: Constants | None
    is_local: bool = True


def recover_layer(judge: Judge, step: Step, of: Filter) -> tuple[Step, Recovered]:
    """Return the network behind one filter, and what was done to it."""
    node, matched = of.node, judge.matched(step.execution)
    weights = np.asarray(step.graph.tensors[node.inputs[1]].data, np.float32)
    placed = place(step.execution.graph, of, weights, matched.get(node.outputs[0]))
    nothing = LayerRecovery(of.index, node.name, node.operator, None, NOTHING, "")
    if isinstance(placed, str):
        return step, Recovered(replace(nothing, reason=placed), None)
    nothing = replace(nothing, bits=placed.bits)
    if of.source not in matched:
        return step, Recovered(replace(nothing, reason="the target has no tensor that means its input"), None)
    grid = placed.grid(step.execution.graph, of)
    moments = judge.moments(step.execution, of, matched[of.source], -grid.least)
    plain = Rounding(grid.q, grid.scale, np.ones(grid.scale.shape, np.bool_))
    proposals = _proposals(judge, moments, of.matrix(weights).astype(np.float64), grid, placed.bits)
    before = after = judge.held_out_db(step.execution, node.outputs)
    alone = math.nan
    is_local = all(t in matched for t in node.outputs)
    best, found, refused = step, Recovered(replace(nothing, reason=WORSE), None, is_local), ""
    for kept, rounding in [(BIAS, plain), *proposals] if judge.objective.moves_bias else proposals:
        constants = _constants(of, weights, rounding, moments)
        if kept == WEIGHTS:
            constants = _rounded(step.graph, of, rounding, grid)
        graph = with_constants(step.graph, of, constants)
        execution = judge.execution(graph)
        if not _gives_back(placed, execution.graph, of, rounding):
            refused = "the target's quantizer does not give back the weights that were found"
            continue
        ratio = judge.held_out_db(execution, node.outputs)
        alone = ratio if kept == BIAS else alone
        if ratio > after:
            best, after = Step(graph, execution), ratio
            fit = (_fit_db(moments, plain), _fit_db(moments, rounding))
            share = float(np.mean(plain.q != rounding.q))
            steps = _in_steps(step, of, constants[1], matched.get(node.outputs[0]))
            layer = replace(nothing, kept=kept, fit_db=fit, changed=share, bias_steps=steps)
            found = Recovered(layer, constants, is_local)
    reason = refused if refused and found.layer.kept in (NOTHING, BIAS) else found.layer.reason
    return best, replace(found, layer=replace(found.layer, reason=reason, bias_db=alone, held_out_db=(before, after)))


def _proposals(judge: Judge, moments: Moments, weights: Doubles, grid: Grid, bits: int) -> list[tuple[str, Rounding]]:
    """Return what may be kept, beside a new bias alone, with the weights that were found for it."""
    options, objective = judge.reference.options, judge.objective
    if options.bias_only or not (objective.rounds or bits <= options.most_bits):
        return []
    if objective.rounds:
        found = find_neighbors(moments, weights, grid, objective)
        return [(ALL if objective.moves_bias else WEIGHTS, found)]
    return [(ALL, find_rounding(moments, weights, grid))]


def with_constants(graph: Graph, of: Filter, constants: Constants) -> Graph:
    """Return the float network with other weights and another bias of a filter."""
    result = graph.copy()
    for t, data in zip(of.node.inputs[1:3], constants, strict=True):
        data.setflags(write=False)
        result.tensors[t] = replace(graph.tensors[t], data=data)
    return result


def _constants(of: Filter, weights: NDArray[np.float32], rounding: Rounding, moments: Moments) -> Constants:
    """Return w' = q S and b' = mean T - S q' mu; channels of plain rounding keep their weights."""
    bias = moments.target_mean - np.einsum("gk,gkc->gc", moments.mu, rounding.q) * rounding.scale
    found = (rounding.q * rounding.scale[:, None]).astype(np.float32)
    kept = np.where(rounding.is_plain[:, None], of.matrix(weights), found)
    return of.weights(kept).astype(np.float32, copy=False), bias.astype(np.float32).reshape(-1)


def _rounded(graph: Graph, of: Filter, rounding: Rounding, grid: Grid) -> Constants:
    """Return w' = q S, but the largest |w| of a scale as it is and none beyond it, so that S stays; b' = b."""
    weights, bias = (np.asarray(graph.tensors[t].data, np.float32) for t in of.node.inputs[1:3])
    own = of.matrix(weights)
    peak = grid.peak(own.astype(np.float64))[:, None].astype(np.float32)
    found = np.clip((rounding.q * rounding.scale[:, None]).astype(np.float32), -peak, peak)
    return of.weights(np.where(np.abs(own) >= peak, own, found)).astype(np.float32, copy=False), bias.copy()


def _fit_db(moments: Moments, rounding: Rounding) -> float:
    """Return the ratio of what the filter should give and what is missing, both without their means, in dB."""
    power = float(moments.target_power.sum())
    loss = float(moments.loss(rounding.q, rounding.scale).sum()) * moments.step
    return round(sqnr_db(power, max(0.0, power + loss)), DECIMALS)


def _in_steps(step: Step, of: Filter, bias: NDArray[np.float32], output: int | None) -> float:
    """Return the largest change of a bias in quantized values of the result."""
    old = np.asarray(step.graph.tensors[of.node.inputs[2]].data).astype(np.float64)
    found = None if output is None else step.execution.graph.tensors[output].quantization
    return float(np.abs(bias - old).max() / found.scale.max()) if isinstance(found, Affine) else math.nan


def _gives_back(placed: Placed, graph: Graph, of: Filter, rounding: Rounding) -> bool:
    try:
        return np.array_equal(of.matrix(placed.read(graph, of)), rounding.q)
    except ValueError:
        return False
