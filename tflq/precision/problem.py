"""All that a trial needs, in one object that goes to worker processes once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tflq import __version__
from tflq.arrays import Doubles
from tflq.benchmarks.metrics import TOP_1, Labels, Metric
from tflq.converters.precision import PrecisionPlan
from tflq.converters.settings import LayerRule, Settings, Value, parse_settings
from tflq.converters.targets import find_mixed_precision, precision_plan_of
from tflq.errors import InputError, OptionError
from tflq.graph import Array, Graph, Model
from tflq.interpreter.kernel_files import KernelFile, loaded_kernel_files
from tflq.parallel.executions import all_outputs, as_is, in_float
from tflq.precision.recovered import Recovering
from tflq.precision.results_file import digest_of
from tflq.precision.trial import Bits, Trial
from tflq.sampling import GivenSamples, Samples


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, a target, and the samples that decide how good a setting is.

    Attributes:
        graph: with the ranges that the target needs.
        target: its name.
        assignments: the user's `key=value` for the whole graph.
        rules: the user's `PATTERN:key=value` for single layers.
        plan: the choices that the target offers.
        samples: dtype[S, *shape] for each input, in the graph's encoding.
        labels: int64[S] classes, or what the samples show or say; None where there are none.
        reference: what the outputs should be: float64[S, elements of all outputs].
        in_float: whether the reference is the model in floating point; else it is the model as it is.
        recovering: what every setting is recovered with before it is judged; None to round to nearest.
        metric: what the labels are compared by.
        version: of tflq, so that workers of another one do not take part.
        kernels: files with kernels that the user loaded; workers load them, too.
    """

    graph: Graph
    target: str
    assignments: tuple[str, ...]
    rules: tuple[str, ...]
    plan: PrecisionPlan
    samples: tuple[Array, ...]
    labels: Labels | None
    reference: Doubles
    in_float: bool
    recovering: Recovering | None = None
    metric: Metric = TOP_1
    version: str = __version__
    kernels: tuple[KernelFile, ...] = field(default_factory=loaded_kernel_files)

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.reference)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that results depend on; the plan does not count, it follows from the rest."""
        return digest_of(
            (self.graph, self.target, self.assignments, self.rules),
            (self.samples, self.labels, self.reference, self.in_float, self.version, *(k.text for k in self.kernels)),
            *(() if self.recovering is None else (self.recovering,)),
            *(() if self.metric == TOP_1 else (self.metric,)),
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """All bits that layers of the plan offer, the widest first."""
        return tuple(sorted({width.bits for layer in self.plan.layers for width in layer.widths}, reverse=True))

    @property
    def widest(self) -> Bits:
        """Bits where every layer is as wide as it can be."""
        return tuple(layer.widths[0].bits for layer in self.plan.layers)

    def alone(self, position: int, bits: int) -> Bits:
        """Return the bits where one layer has some and all others are at their widest."""
        return (*self.widest[:position], bits, *self.widest[position + 1 :])

    def uniform(self, bits: int) -> Bits:
        """Return the bits where every layer has the same: the widest that is not wider, else its narrowest."""
        return tuple(
            next((w.bits for w in layer.widths if w.bits <= bits), layer.widths[-1].bits) for layer in self.plan.layers
        )

    def size_bytes(self, bits: Bits) -> int:
        """Return the size of a setting, as the plan counts."""
        return int(self.plan.sizes.of(bits))

    def layer_texts(self, bits: Bits) -> tuple[str, ...]:
        """Return `PATTERN:key=value,...` for each layer of the plan, as `--layer` takes it."""
        return tuple(
            f"{pattern_of(self.graph, layer.index)}:{_pairs(layer.width(b).values)}"
            for layer, b in zip(self.plan.layers, bits, strict=True)
        )

    def settings(self, trial: Trial) -> Settings:
        """Return the complete settings of a trial."""
        known = find_mixed_precision(self.target).settings
        return parse_settings(known, self.assignments, (*self.rules, *self.layer_texts(trial.bits)))


def pattern_of(graph: Graph, index: int) -> str:
    """Return a pattern that names one node alone: its name, or its index where the name would not do."""
    node = graph.nodes[index]
    rule = LayerRule(node.name, {})
    matching = [i for i, other in enumerate(graph.nodes) if rule.matches(i, other.name, other.operator)]
    plain = bool(node.name) and node.name == node.name.strip() and ":" not in node.name
    return node.name if plain and matching == [index] else str(index)


def make_problem(
    model: Model,
    ranged: Graph,
    target: str,
    settings: tuple[tuple[str, ...], tuple[str, ...]],
    samples: Samples,
    labels: Labels | None,
    *,
    against_float: bool = False,
    widths: Collection[int] = (),
    recovering: Recovering | None = None,
    metric: Metric = TOP_1,
) -> Problem:
    """Make a problem: find the choices and run the reference.

    Args:
        model: what the samples are for.
        ranged: its main graph, with ranges.
        target: name of a target that offers choices.
        settings: the user's, for the whole graph and for single layers.
        samples: in the encoding of the model's inputs.
        labels: one for each sample, or None.
        against_float: whether the model in floating point is the reference, instead of the model as it is.
        widths: only these bits; all that the target offers where none is given.
        recovering: recovers every setting before it is judged.
        metric: what the labels are compared by.

    Raises:
        OptionError: the target offers no choice for this graph; settings that do not fit.
        UnsupportedError: the target cannot take the graph.
        InputError: classes for a model with several outputs.
    """
    found = find_mixed_precision(target)
    plan = _restricted(precision_plan_of(target, ranged, parse_settings(found.settings, *settings)), widths)
    if not plan.layers:
        only = f" with {', '.join(map(str, sorted(widths)))} bits" if widths else ""
        raise OptionError(
            f"target {target}: no layer of this model has a choice of precision{only} with these settings"
        )
    if isinstance(labels, np.ndarray) and len(ranged.outputs) != 1:
        raise InputError(f"labels need a model with one output; this one has {len(ranged.outputs)}")
    arrays = tuple(np.ascontiguousarray(a) for a in samples.take(0, samples.count))
    reference = all_outputs(in_float(model) if against_float else as_is(model), GivenSamples(arrays))
    return Problem(ranged, target, *settings, plan, arrays, labels, reference, against_float, recovering, metric)


def _restricted(plan: PrecisionPlan, allowed: Collection[int]) -> PrecisionPlan:
    """Keep some widths of every layer; a plan without any choice left has no layers."""
    layers = []
    for layer in plan.layers:
        kept = tuple(width for width in layer.widths if not allowed or width.bits in allowed)
        if not kept:
            offered = ", ".join(str(width.bits) for width in layer.widths)
            raise OptionError(f"layer '{layer.name}' takes {offered} bits, none of which is among the widths asked for")
        layers.append(replace(layer, widths=kept))
    has_choice = any(len(layer.widths) > 1 for layer in layers)
    return replace(plan, layers=tuple(layers) if has_choice else ())


def _pairs(values: Mapping[str, Value]) -> str:
    return ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()
    )
