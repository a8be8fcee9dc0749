"""The loop over the filters of a network (docs/recover.md): propose, quantise by the target itself, judge, keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import Execution, in_float
from tflq.analysis.inputs import Samples
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.graph import ABSENT, Affine, DType, Graph, Model, Tensor
from tflq.precision.recover.descent import Rounding, find_rounding
from tflq.precision.recover.filters import FILTERS, Filter, filter_of
from tflq.precision.recover.grid import Reals
from tflq.precision.recover.judge import DECIMALS, Judge, before_softmax
from tflq.precision.recover.layers import Placed, place
from tflq.precision.recover.moments import Moments
from tflq.precision.recover.probe import RealSamples

NOTHING, BIAS, ALL = "nothing", "bias", "weights and bias"
WORSE = "nothing was nearer to float on the samples kept aside"

Done = Callable[[int], object]


@dataclass(frozen=True)
class RecoverySettings:
    """How layers are recovered.

    Attributes:
        rows: output positions of a filter that are fitted to.
        seed: of their choice.
        bias_only: leave all weights as they are.
        most_bits: find new quantized weights up to these bits; wider layers get a new bias only.
    """

    rows: int = 8000
    seed: int = 0
    bias_only: bool = False
    most_bits: int = 7


@dataclass(frozen=True)
class LayerRecovery:
    """What was done to one filter.

    Attributes:
        index: of its node in the float network.
        name: of that node.
        operator: of that node.
        bits: of its weights under the target; None where they were not found there.
        kept: of what was found: "weights and bias", "bias", or "nothing".
        reason: why nothing, or no weights; else empty.
        fit_db: of the filter's own result on the samples that it was fitted to, before and after: SQNR, in dB.
        held_out_db: of the layer's result in the target's integers on the samples kept aside, before and after.
        changed: share of the quantized weights that are others now.
        bias_steps: largest change of a bias, in quantized values of the result; NaN where they are not known.
    """

    index: int
    name: str
    operator: str
    bits: int | None
    kept: str
    reason: str
    fit_db: tuple[float, float] = (math.nan, math.nan)
    held_out_db: tuple[float, float] = (math.nan, math.nan)
    changed: float = 0.0
    bias_steps: float = math.nan


@dataclass(frozen=True)
class Recovery:
    """A network that was recovered.

    Attributes:
        network: the float network with the new weights and biases, and its ranges.
        plain: the same with the model's own.
        layers: its filters in order of execution.
        execution: the network under the target.
        plain_execution: the plain one.
        reason: why the whole network was left as it was; else empty.
    """

    network: Model
    plain: Model
    layers: tuple[LayerRecovery, ...]
    execution: Execution
    plain_execution: Execution
    reason: str = ""


def recover_network(
    source: Model,
    network: Model,
    target: Target,
    settings: Settings,
    samples: tuple[Samples, Samples],
    options: RecoverySettings = RecoverySettings(),
    progress: Done = lambda _: None,
) -> Recovery:
    """Find weights and biases for a target, filter after filter in order of execution.

    A filter is fitted to what the model's own weights give on the float network's values, from the quantized values
    that the target's integers give it. What is found is written into the float network, the target's unchanged
    quantiser makes its integers of it, and of the old weights, a new bias, and new weights with theirs that one stays
    whose result is nearest on the samples that are kept aside.

    Args:
        source: the model that the samples are for.
        network: its float network with ranges (converters/dequantized.py).
        target: with a free rounding of weights.
        settings: complete.
        samples: to fit to, and kept aside, in the encoding of `source`.
        options: how.
        progress: called with 1 for each filter.

    Raises:
        UnsupportedError, OptionError: as the target's `quantise`.
    """
    plain = replace(network, graphs=[_with_biases(network.main), *network.graphs[1:]])
    fitted, held_out = (RealSamples(s, source.main, plain.main) for s in samples)
    known = {i: filter_of(plain.main, i) for i, n in enumerate(plain.main.nodes) if n.operator in FILTERS}
    filters = tuple(of for of in known.values() if isinstance(of, Filter))
    floating = in_float(plain, "independent")
    judge = Judge(floating, target, settings, fitted, held_out, filters, options.rows, options.seed)
    before = judge.execution(plain.main)
    step, layers = _Step(plain.main, before), []
    for index, of in known.items():
        node = plain.main.nodes[index]
        if isinstance(of, str):
            layers.append(LayerRecovery(index, node.name, node.operator, None, NOTHING, of))
        else:
            step, layer = _recover_layer(judge, options, step, of)
            layers.append(layer)
        progress(1)
    old, new = (judge.held_out_db(e, before_softmax(floating.graph)) for e in (before, step.execution))
    if new < old:
        reason = f"the outputs got worse on the samples kept aside: {old:.1f} dB before, {new:.1f} after"
        left = tuple(replace(layer, kept=NOTHING, reason=layer.reason or reason) for layer in layers)
        return Recovery(plain, plain, left, before, before, reason)
    result = replace(plain, graphs=[step.graph, *plain.graphs[1:]])
    return Recovery(result, plain, tuple(layers), step.execution, before)


@dataclass(frozen=True)
class _Step:
    """The float network as it stands, and under the target."""

    graph: Graph
    execution: Execution


def _recover_layer(judge: Judge, options: RecoverySettings, step: _Step, of: Filter) -> tuple[_Step, LayerRecovery]:
    """Return the network behind one filter, and what was done to it."""
    node, matched = of.node, judge.matched(step.execution)
    weights = np.asarray(step.graph.tensors[node.inputs[1]].data, np.float32)
    placed = place(step.execution.graph, of, weights, matched.get(node.outputs[0]))
    nothing = LayerRecovery(of.index, node.name, node.operator, None, NOTHING, "")
    if isinstance(placed, str):
        return step, replace(nothing, reason=placed)
    nothing = replace(nothing, bits=placed.bits)
    if of.source not in matched:
        return step, replace(nothing, reason="the target has no tensor that means its input")
    grid = placed.grid(step.execution.graph, of)
    moments = judge.moments(step.execution, of, matched[of.source], grid.largest)
    plain = Rounding(grid.q, grid.scale, np.ones(grid.scale.shape, np.bool_))
    proposals = [(BIAS, plain)]
    if not options.bias_only and placed.bits <= options.most_bits:
        proposals.append((ALL, find_rounding(moments, of.matrix(weights).astype(np.float64), grid)))
    before = after = judge.held_out_db(step.execution, node.outputs)
    best, layer, refused = step, replace(nothing, reason=WORSE), ""
    for kept, rounding in proposals:
        bias = moments.target_mean - np.einsum("gk,gkc->gc", moments.mu, rounding.q) * rounding.scale
        graph = _with_weights(step.graph, of, weights, rounding, bias)
        execution = judge.execution(graph)
        if not _gives_back(placed, execution.graph, of, rounding):
            refused = "the target's quantiser does not give back the weights that were found"
            continue
        found = judge.held_out_db(execution, node.outputs)
        if found > after:
            best, after = _Step(graph, execution), found
            fit = (_fit_db(moments, plain), _fit_db(moments, rounding))
            share = float(np.mean(plain.q != rounding.q))
            steps = _in_steps(step, of, bias, matched.get(node.outputs[0]))
            layer = replace(nothing, kept=kept, fit_db=fit, changed=share, bias_steps=steps)
    if refused and layer.kept != ALL:
        layer = replace(layer, reason=refused)
    return best, replace(layer, held_out_db=(before, after))


def _fit_db(moments: Moments, rounding: Rounding) -> float:
    """Return the ratio of what the filter should give and what is missing, both without their means, in dB."""
    power = float(moments.target_power.sum())
    loss = float(moments.loss(rounding.q, rounding.scale).sum()) * moments.step
    return round(sqnr_db(power, max(0.0, power + loss)), DECIMALS)


def _in_steps(step: _Step, of: Filter, bias: Reals, output: int | None) -> float:
    """Return the largest change of a bias in quantized values of the result."""
    old = np.asarray(step.graph.tensors[of.node.inputs[2]].data).astype(np.float64).reshape(bias.shape)
    found = None if output is None else step.execution.graph.tensors[output].quantisation
    return float(np.abs(bias - old).max() / found.scale.max()) if isinstance(found, Affine) else math.nan


def _gives_back(placed: Placed, graph: Graph, of: Filter, rounding: Rounding) -> bool:
    try:
        return np.array_equal(of.matrix(placed.read(graph, of)), rounding.q)
    except ValueError:
        return False


def _with_weights(graph: Graph, of: Filter, weights: NDArray[np.float32], rounding: Rounding, bias: Reals) -> Graph:
    """Return the float network with w' = q S and b' of a filter; channels of plain rounding keep their weights."""
    result = graph.copy()
    found = (rounding.q * rounding.scale[:, None]).astype(np.float32)
    kept = np.where(rounding.is_plain[:, None], of.matrix(weights), found)
    values = (of.weights(kept), bias.astype(np.float32).reshape(-1))
    for t, data in zip(of.node.inputs[1:3], values, strict=True):
        data.setflags(write=False)
        result.tensors[t] = replace(graph.tensors[t], data=data)
    return result


def _with_biases(graph: Graph) -> Graph:
    """Return the float network with a bias of its own for each filter: zeros where it has none, a copy where shared."""
    result, taken = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator not in FILTERS:
            continue
        t = node.inputs[2] if len(node.inputs) > 2 else ABSENT
        if t != ABSENT and t not in taken:
            taken.add(t)
            continue
        weights = graph.tensors[node.inputs[1]]
        channels = weights.shape[3] if node.operator == "depthwise_conv_2d" else weights.shape[0]
        zeros = Tensor(f"{node.name}/bias", (channels,), DType.FLOAT32, data=np.zeros(channels, np.float32))
        own = result.add_tensor(zeros if t == ABSENT else replace(graph.tensors[t], name=f"{node.name}/bias"))
        result.nodes[index] = replace(node, inputs=(*node.inputs[:2], own))
    return result
