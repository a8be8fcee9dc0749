"""`tflq.explain`: every step of one output element."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recovered_layers import recovered_layers
from tflq.api.result import Result, select_attributes
from tflq.api.samples import samples as choose_samples
from tflq.api.sides import Quantizing, Side, parse_side
from tflq.api.target import merge_settings
from tflq.diagnosis.compare import Running, dump_of, match
from tflq.diagnosis.compare.dumps import wanted_of
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.diagnosis.explain import Explainer, Explanation, SideBySide, Step, explain_constant, side_by_side
from tflq.diagnosis.hypotheses.linear import Needed, needed
from tflq.errors import InputError, OptionError, TflqError, UnsupportedError, UsageError
from tflq.graph import Model, find_tensor
from tflq.graph.cut import needed_nodes, with_nodes
from tflq.interpreter.runtimes import REFERENCE, RuntimeName
from tflq.quoting import Json, plain_json
from tflq.report import Table, Verdict, Word, keys, word_of
from tflq.report.explanation import side_by_side_table, steps_tables
from tflq.sampling import Samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import ExplainKeywords


@dataclass(frozen=True)
class ExplainOptions:
    """Options that select the computation to explain.

    Attributes:
        sample: Number of the sample, counted from 0.
        target: Target to quantize for (default: the unchanged model).
        arithmetic: TFLite's integers, the default without a target.
        runtime: Runtime to compute the integers of, without a target.
        against_runtime: Runtime that computes the same element for comparison.
        against: Other computation of the same element for comparison: a model, @float, @TARGET; or a dump.
        dump: Layout and encoding of the dump, as far as its files do not specify them.
        calibration: Ranges for targets.
    """

    sample: int = 0
    target: TargetOptions | str | None = None
    arithmetic: Literal["tflite"] | None = None
    runtime: RuntimeName = REFERENCE
    against_runtime: RuntimeName | None = None
    against: ModelSource | None = None
    dump: DumpOptions = DumpOptions()
    calibration: CalibrationOptions = CalibrationOptions()


@dataclass(frozen=True)
class DeviceNumber:
    """A dump's value of the element.

    Attributes:
        dump: File of the dump.
        value: Value in the dump.
        needed: Accumulator that produces this value; None for operators without one.
    """

    dump: str
    value: float
    needed: Needed | None

    @property
    def words(self) -> str:
        """The accumulator that produces this value, in words."""
        return "no accumulator to compare with" if self.needed is None else self.needed.words


@dataclass(frozen=True)
class ExplainResult(Result):
    """Steps that compute one element.

    Attributes:
        names: Name of the computation, and of the one that it is compared with.
        explanation: Steps of the computation.
        against: Both computations side by side, or None.
        device: Value of the element in a dump, or None.
        recovered: Remark of a recovered file on the layer; empty for other files.
    """

    names: tuple[str, ...]
    explanation: Explanation
    against: SideBySide | None
    device: DeviceNumber | None = None
    recovered: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether both computations, or the computation and the dump, end in the same value."""
        if self.device is not None:
            return self.device.value == self.explanation.stored
        return self.against is None or self.against.first.stored == self.against.second.stored

    @property
    def verdict(self) -> Verdict:
        """The stored value; for a comparison also the first step that differs."""
        explanation, is_compared = self.explanation, self.against is not None or self.device is not None
        word: Word = word_of(self.is_equal) if is_compared else ""
        real = "" if explanation.real is None else f", as a real number {explanation.real:.6g}"
        stored = explanation.stored if isinstance(explanation.stored, (int, float)) else None
        text = "" if stored is not None else f"{explanation.stored} "
        unit = f"{text}is '{explanation.tensor}' {list(explanation.index)} of sample {explanation.sample}{real}"
        advice = self.against.words() if self.against is not None else ""
        if self.device is not None:
            same = "the same" if self.is_equal else f"{self.device.value:g}; {self.device.words}"
            advice = f"{self.device.dump} has {same}"
        return Verdict(word, stored, unit, self.names[1] if is_compared else "", advice=advice)

    @property
    def notes(self) -> Sequence[str]:
        """Remark of a recovered file."""
        return [self.recovered] if self.recovered else []

    def tables(self) -> Sequence[Table]:
        """Return the steps, or both computations side by side."""
        parts = self.explanation.parts
        rows = [{"tensor": part.tensor, **_step(step)} for part in parts for step in part.steps]
        steps = Table("steps", keys("tensor", "step", "formula", "value"), rows, in_json=False)
        if self.against is not None:
            return [steps, side_by_side_table(self.against, *self.names)]
        return [steps, *steps_tables(self.explanation)]

    def to_dict(self) -> dict[str, Json]:
        """Return the element and all parts with their steps; of both computations if there are two."""
        report = {**super().to_dict(), **({"recovered": self.recovered} if self.recovered else {})}
        if self.against is not None:
            both = {"first": _explanation(self.against.first), "second": _explanation(self.against.second)}
            parting = self.against.parting
            place: Json = None if parting is None else {"step": parting.label, "place": list(parting.place)}
            return {**report, "equal": self.is_equal, "parting": place, **both}
        device = {} if self.device is None else select_attributes(self.device, "dump", "value", "words")
        return {
            **report,
            **_explanation(self.explanation),
            **({"equal": self.is_equal, "device": device} if device else {}),
        }


def explain(
    model: ModelSource,
    tensor: str,
    index: Sequence[int],
    samples: SampleSource = None,
    options: ExplainOptions = ExplainOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[ExplainKeywords],
) -> ExplainResult:
    """Show every step of one element: inputs, weights, products, bias, multiplier, roundings, clamp.

    Args:
        model: Model that computes the element.
        tensor: Name or number of the tensor in the model, or a layer as --layer names it; constants are explained,
            too.
        index: Element, in the model's own axes.
        samples: Samples to run (default: random ones).
        options: Sample, arithmetic, comparison.
        progress: Progress callback of the calibration.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: Options that contradict each other, or a dump without a model.
        InputError, OptionError, UnsupportedError: The tensor, element, sample or target does not exist.
        TflqError: The steps do not end in the value that the engine computed.
    """
    options = replace_options(options, changes)
    target = merge_settings(options.target, options.calibration)
    if target.name is not None and options.arithmetic is not None:
        raise UsageError("--target brings its own arithmetic; omit --arithmetic")
    a = _side(model, target.name, options.runtime)
    against = _against(options)
    b = None if against is None else parse_side(against, may_lack_model=True)
    if a.is_dump:
        raise UsageError("a dump has no computation to explain; name a model")
    quantizing = Quantizing(target, options.calibration, progress)
    quantizing.refuse_unless(a, None if b is not None and b.is_dump else b)
    original = a.model()
    chosen = choose_samples(original, samples, count=options.sample + 1)
    if options.sample >= chosen.count:
        raise OptionError(f"--sample {options.sample}: there are {chosen.count} samples, counted from 0")
    left = _running(quantizing, a, original, chosen, original, tensor)
    constant = _constant(left, tensor)
    if constant is not None:
        return ExplainResult((a.text,), _explain_constant(left, constant, index, options.sample), None)
    explainer = _explainer(left, options.sample)
    t = _tensor(left, explainer, tensor, a)
    first = _require_consistency(explainer.explain(t, tuple(index)))
    recovered = _recovery_remark(original, left, t)
    if b is None:
        return ExplainResult((a.text,), first, None, recovered=recovered)
    if b.is_dump:
        device = _device(left, explainer, t, first, b, options)
        return ExplainResult((a.text, b.text), first, None, device, recovered)
    right = _running(quantizing, b, b.model(original), chosen, original, tensor)
    other = _explainer(right, options.sample)
    second = _require_consistency(other.explain(_counterpart(left, right, t, other), tuple(index)))
    return ExplainResult((a.text, b.text), first, side_by_side(first, second), recovered=recovered)


def _running(
    quantizing: Quantizing, side: Side, model: Model, chosen: Samples, samples_of: Model, tensor: str
) -> Running:
    """Return a side; of a model with an operator that has no kernel or is refused, the part that the tensor needs."""
    try:
        return quantizing.running(side, model, chosen, samples_of)
    except UnsupportedError:
        if side.is_target:
            raise
        needed = needed_nodes(model.main, [find_tensor(model.main, tensor)])
        if len(needed) == len(model.main.nodes):
            raise
        part = replace(model, graphs=[with_nodes(model.main, needed), *model.graphs[1:]])
        return quantizing.running(side, part, chosen, part if model is samples_of else samples_of)


def _explain_constant(side: Running, constant: int, index: Sequence[int], sample: int) -> Explanation:
    execution = side.execution
    graph = execution.source if execution.is_as_is else execution.graph
    return explain_constant(execution.source, constant, tuple(index), graph, sample)


def _against(options: ExplainOptions) -> ModelSource | None:
    if options.against_runtime is None:
        return options.against
    if options.against is not None:
        raise UsageError("--against and --against-runtime both name the other computation; omit one")
    return f"@{options.against_runtime}"


def _recovery_remark(model: Model, side: Running, t: int) -> str:
    """Return the remark of a recovered file on the layer that writes a tensor; empty without one."""
    names = {node.name for node in side.execution.graph.nodes if t in node.outputs}
    return next((layer.text for layer in recovered_layers(model) if layer.name in names), "")


def _constant(side: Running, tensor: str) -> int | None:
    """Return the constant of the model with this name or number; None for other tensors."""
    tensors = side.execution.source.tensors
    constants = [i for i, t in enumerate(tensors) if t.is_constant and tensor in (t.name, str(i))]
    return constants[0] if constants else None


def _tensor(side: Running, explainer: Explainer, tensor: str, named: Side) -> int:
    """Return the tensor of the graph that runs; a name or number of the model denotes the same tensor in every target.

    Raises:
        OptionError: There is no such tensor.
    """
    source = side.execution.source
    if not named.is_target or not tensor.isdecimal():
        return explainer.find(tensor)
    number = int(tensor)
    computed_as = {w.index: c.index for w, c in zip(wanted_of(side), side.columns, strict=True) if w.index is not None}
    computed = set(explainer.tensors())
    if number in computed_as and computed_as[number] in computed:
        return computed_as[number]
    name = f" ('{source.tensors[number].name}')" if number < len(source.tensors) else ""
    known = ", ".join(str(n) for n, t in sorted(computed_as.items()) if t in computed)
    raise OptionError(
        f"{named.what} computes no tensor for the model's tensor {number}{name}, which is fused or does not exist; it "
        f"has {known}"
    )


def _device(
    side: Running, explainer: Explainer, t: int, first: Explanation, given: Side, options: ExplainOptions
) -> DeviceNumber:
    """Return the value of an element in a dump.

    Raises:
        InputError: The dump does not contain the tensor, or the element.
    """
    dump = dump_of(given.archive(options.dump), side, options.dump)
    column = next((c for c in dump.columns if c.index == t), None)
    if column is None or options.sample >= dump.count:
        names = ", ".join(f"'{c.name}'" for c in dump.columns[:4])
        raise InputError(f"{dump.name}: no sample {options.sample} of '{first.tensor}'; available: {names}")
    array = dump.arrays[column.name][options.sample].reshape(-1)
    shape = side.execution.graph.tensors[t].shape
    flat = int(np.ravel_multi_index(first.index, shape))
    if flat >= array.size:
        raise InputError(f"{dump.name}: '{first.tensor}' ends at element {array.size}, {list(first.index)} is {flat}")
    value = array[flat].item()
    node, inputs = explainer.inputs_of(t)
    x = inputs[0] if inputs else None
    linear = isinstance(value, int) and x is not None
    return DeviceNumber(dump.name, value, needed(node, x, first.index, value) if linear and x is not None else None)


def _side(model: ModelSource, target: str | None, runtime: RuntimeName) -> Side:
    if target is not None and runtime != REFERENCE:
        raise UsageError("--target brings its own arithmetic; omit --runtime")
    what = target or (None if runtime == REFERENCE else runtime)
    if what is None:
        return parse_side(model)
    name = f"{name_of(model)}@{what}"
    return parse_side(name) if isinstance(model, (str, os.PathLike)) else Side(name, read_model(model), what)


def _explainer(side: Running, sample: int) -> Explainer:
    return Explainer(side.execution.engine, side.inputs(sample, sample + 1), sample)


def _counterpart(first: Running, second: Running, t: int, other: Explainer) -> int:
    """Return the corresponding tensor of the other graph."""
    pairs = {m.first.index: m.second.index for m in match(first.columns, second.columns).matches}
    return pairs[t] if t in pairs else other.find(first.execution.graph.tensors[t].name)


def _require_consistency(explanation: Explanation) -> Explanation:
    """Check that a computation ends in the value that the engine computed."""
    for part in explanation.parts:
        if not part.is_sound:
            raise TflqError(
                f"the explanation of '{part.tensor}' {list(part.index)} ends in {part.steps[-1].value}, the "
                f"interpreter stores {part.stored}; please report it"
            )
    return explanation


def _explanation(explanation: Explanation) -> dict[str, Json]:
    parts: list[Json] = [
        {
            **select_attributes(part, "tensor", "index", "node", "operator", "arithmetic", "source"),
            "steps": [_step(step) for step in part.steps],
        }
        for part in explanation.parts
    ]
    head = select_attributes(explanation, "tensor", "index", "sample", "stored", "real")
    return {key: plain_json(value) for key, value in {**head, "parts": parts}.items()}


def _step(step: Step) -> Mapping[str, Json]:
    return {"step": step.label, "formula": step.formula, "value": step.value}
