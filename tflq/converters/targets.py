"""Targets: the explicit table, and those that other packages add through the entry-point group `tflq.targets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

import numpy as np

from tflq.converters.calibration import StatisticsOptions
from tflq.converters.mappings import expand_operators
from tflq.converters.passes.requirements import refuse_state
from tflq.converters.settings import Setting, Settings, SettingsFile
from tflq.errors import GraphError, OptionError, TflqError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Graph, Model, Tensor
from tflq.graph.rewriting import pause_trace
from tflq.interpreter.operands.checks import require_sound_tensor
from tflq.plugins import find_entry_points
from tflq.quoting import file_name

if TYPE_CHECKING:
    from tflq.converters.engines import EngineChooser
    from tflq.converters.estimate import Estimator
    from tflq.converters.precision import PrecisionPlan, Promotion

ENTRY_POINT_GROUP = "tflq.targets"

Specification = Mapping[str, object]
Artifacts = Mapping[str, bytes]
"""File name -> content."""


@dataclass(frozen=True)
class Target:
    """A device that a graph can be quantized for: data, and functions over graphs.

    The way is: settings = parse_settings(target.settings, ...); problems_of(target, graph, settings) for what stands in
    the way; graph = target.quantize(graph, settings); tflq.interpreter.lower(graph) for the integers, and
    target.emit(graph, source) for the files.

    Attributes:
        name: as the user writes it, such as "gap9-ne16".
        summary: one line for lists.
        arithmetic: whose kernels run its graphs.
        specification: bits, symmetry, granularity, multiplier format and limits, as data.
        settings: the keys that it knows.
        check: returns one line for each operator that cannot be mapped: which, why, and the way out.
        quantize: returns the target's graph: its types, its requantized constants, its inserted nodes. Raises
            UnsupportedError for what `check` lists, all at once, or a value that the target cannot hold; OptionError
            for a setting that does not fit the graph.
        encode: returns the quantized values of real numbers in a tensor of a quantized graph, rounded as the target's
            tool does.
        emit: returns the files of a quantized graph, lowered or not; nothing is written.
        precision_plan: returns the widths that single layers can have; a layer whose width a rule of the settings names
            has none. None where there is nothing to choose. Raises as `quantize`.
        promotions: what a backward search gives the last layers of a network, the cheapest first.
        tool: Name of the vendor's tool, as the list of `convert` names it.
        departures: Function of a lowered graph: name of a layer, or "" for the whole model -> what the vendor's tool or
            the device computes otherwise.
        file_departures: Function of the file's graph, in which no constant is folded, and the settings: name of an
            operator, or "" for the whole model -> the construct on which the vendor's tool fails, or the mode of the
            tool that is not modeled.
        engines: Returns first output of a node -> the engine that runs it; of a quantized graph.
        read_limits: Returns tensor -> largest magnitude that its readers keep, of a quantized graph; comparisons clip
            to it.
        statistics: Defaults of its tool's calibration; None for the defaults of `StatisticsOptions`.
        estimate: returns what a quantized graph costs, or why nothing is offered.
        tool_settings: Function of settings, names of emitted files and the name of the file to write: settings as the
            vendor's tool reads them; None if it has no such file. Raises FormatError for settings that the tool lacks.
        read_settings: returns the settings in a file of the vendor's tool, of its text and path; None if the file is of
            another form. Raises FormatError for content that is not computed here.
        choose_engines: returns the engine of each layer by that estimate; None where a target has one engine, or one
            that every layer shall have.
        keeps_variables: True if the target stores variables between invocations.
    """

    name: str
    summary: str
    arithmetic: str
    specification: Specification
    settings: Sequence[Setting]
    check: Callable[[Graph, Settings], tuple[str, ...]]
    quantize: Callable[[Graph, Settings], Graph]
    encode: Callable[[Array, Tensor], Array]
    emit: Callable[[Graph, Model], Artifacts]
    precision_plan: Callable[[Graph, Settings], PrecisionPlan] | None = None
    promotions: Sequence[Promotion] = ()
    tool: str = "the vendor's tool"
    departures: Callable[[Graph], Mapping[str, str]] = lambda _graph: {}
    file_departures: Callable[[Graph, Settings], Mapping[str, str]] = lambda _graph, _settings: {}
    engines: Callable[[Graph], Mapping[int, str]] = lambda graph: {
        t: node.attributes.text("engine", "") for node in graph.nodes for t in node.outputs[:1]
    }
    read_limits: Callable[[Graph], Mapping[int, float]] = lambda _graph: {}
    statistics: StatisticsOptions | None = None
    estimate: Estimator | str = "no cycles, bandwidth or energy of this device were published or measured"
    tool_settings: Callable[[Settings, Sequence[str], str], str] | None = None
    read_settings: Callable[[str, str], SettingsFile | None] = lambda _text, _path: None
    choose_engines: EngineChooser | None = None
    keeps_variables: bool = False


_TABLE = {
    "aipu": "tflq.converters.aipu:AIPU",
    "gap9-ne16": "tflq.converters.gap9:NE16",
    "gap9-sq8": "tflq.converters.gap9:SQ8",
    "nnie": "tflq.converters.nnie:NNIE",
    "openvino": "tflq.converters.openvino:OPENVINO",
    "onnx": "tflq.converters.onnx:ONNX",
    "tpu-mlir": "tflq.converters.tpu_mlir:TPU_MLIR",
    "tflite": "tflq.converters.tflite_quantizer:TFLITE",
    "tflm": "tflq.converters.tflm:TFLM",
}


_OWNERS = {"aipu": "aipu", "aipu_float": "aipu"}
"""Arithmetic of the layers in a file of Compass, quantized and float -> that of the target that takes them."""


def target_names() -> tuple[str, ...]:
    """Return the names of all targets, those of other packages included."""
    return tuple(sorted({*_TABLE, *_foreign()}))


def find_target(name: str) -> Target:
    """Return a target by name; its module is imported now.

    Another package may give any object with a target's attributes; it becomes a record.

    Raises:
        OptionError: there is none of that name; the message lists those that exist.
        TflqError: another package's target does not have what a target needs, or has the name of one of ours.
    """
    foreign = _foreign()
    if name in foreign and name in _TABLE:
        raise TflqError(f"target '{name}' exists in tflq and again in {foreign[name]}; remove one")
    place = _TABLE.get(name) or foreign.get(name)
    if place is None:
        raise OptionError(
            f"unknown target '{name}'; there are {', '.join(target_names())} "
            "(docs/internals/extending.md: how to add one)"
        )
    module, _, attribute = place.partition(":")
    target: object = getattr(import_module(module), attribute)
    if not isinstance(target, Target):
        needed = [f.name for f in fields(Target) if f.default is MISSING]
        if not all(hasattr(target, key) for key in needed):
            raise TflqError(f"target '{name}' of {place} lacks one of: {', '.join(needed)}")
        target = Target(**{f.name: getattr(target, f.name) for f in fields(Target) if hasattr(target, f.name)})
    return _expand_first(target)


def _expand_first(target: Target) -> Target:
    """Return a target that reads graphs with custom operators replaced by their expansions.

    Only `quantize` is part of a trace of passes: the others run the same passes again.
    """
    plan = target.precision_plan

    def check(graph: Graph, settings: Settings) -> tuple[str, ...]:
        with pause_trace():
            return target.check(expand_operators(target.name, graph), settings)

    def quantize(graph: Graph, settings: Settings) -> Graph:
        return target.quantize(expand_operators(target.name, graph), settings)

    def emit(graph: Graph, source: Model) -> Artifacts:
        with pause_trace():
            main = expand_operators(target.name, source.main)
            return target.emit(graph, replace(source, graphs=[main, *source.graphs[1:]]))

    def find_plan(graph: Graph, settings: Settings) -> PrecisionPlan:
        assert plan is not None
        with pause_trace():
            return plan(expand_operators(target.name, graph), settings)

    return replace(target, check=check, quantize=quantize, emit=emit, precision_plan=find_plan if plan else None)


def problems_of(target: Target, graph: Graph, settings: Settings) -> tuple[str, ...]:
    """Return what `check` lists; of a graph of layers that are another target's own, that one line.

    Such layers have names and operands of their own, or those of TFLite's operators with another meaning: a check that
    is made for TFLite's graphs does not know them.
    """
    for index, node in enumerate(graph.nodes):
        owner = _OWNERS.get(node.arithmetic or "", target.arithmetic)
        if owner != target.arithmetic:
            way = "give the model that the file was made of"
            return (f"{graph.where(index)}: is a layer of target {owner}, which alone takes such files; {way}",)
    states = () if target.keeps_variables else refuse_state(graph)
    return _unsound_scales(graph) or states or target.check(graph, settings)


def _unsound_scales(graph: Graph) -> tuple[str, ...]:
    """Return a line for each tensor of TFLite's operators whose scale stands for nothing, at the first that has it.

    A scale of 0 counts only where no scale is infinite or NaN: a FILL of zeros has it (16x8, unrolled recurrences),
    and would be a constant, which may, if the graph were sound otherwise.
    """
    found: dict[int, str] = {}
    for index, node in enumerate(graph.nodes):
        for t in (*node.inputs, *node.outputs) if node.arithmetic is None else ():
            if t == ABSENT:
                continue
            try:
                require_sound_tensor(graph.tensors[t])
            except GraphError as error:
                found.setdefault(t, f"{graph.where(index)}: {error}")
    worst = [t for t in found if not np.isfinite(cast(Affine, graph.tensors[t].quantization).scale).all()]
    return tuple(found[t] for t in worst or found)


def targets_with(attribute: str) -> tuple[str, ...]:
    """Return the names of the targets that have something optional: "precision_plan" or "promotions"."""
    return tuple(name for name in target_names() if getattr(find_target(name), attribute))


def find_mixed_precision(name: str) -> Target:
    """Return a target with a precision plan.

    Raises:
        OptionError: No such target, or a target without a plan; the message lists the targets with one.
    """
    target = find_target(name)
    if target.precision_plan is None:
        known = ", ".join(targets_with("precision_plan"))
        raise OptionError(f"target {name} offers no precision for single layers to choose from; allowed are {known}")
    return target


def precision_plan_of(name: str, graph: Graph, settings: Settings) -> PrecisionPlan:
    """Return the widths that each layer of a graph can have for a target.

    Raises:
        OptionError: As `find_mixed_precision`, or settings that do not fit the graph.
        UnsupportedError: Operators that the target does not support, all in one message.
    """
    target = find_mixed_precision(name)
    assert target.precision_plan is not None
    problems = problems_of(target, graph, settings)
    if problems:
        raise UnsupportedError(f"target {name}: " + "; ".join(problems))
    return target.precision_plan(graph, settings)


def find_promotable(name: str) -> Target:
    """Return a target with promotions, which widen all layers from a given one to the end (docs/guides/search.md).

    Raises:
        OptionError: No such target, or a target without promotions.
    """
    target = find_target(name)
    if not target.promotions:
        known = ", ".join(targets_with("promotions"))
        raise OptionError(f"target {name}: its layers are not promotable; allowed is {known}")
    return target


def model_name(source: Model) -> str:
    """Return what emitted files are called after: the stem of the model's file as a name for files, or "model"."""
    return file_name(PurePath(source.source).stem) or "model"


def _foreign() -> dict[str, str]:
    return {entry.name: entry.value for entry in find_entry_points(ENTRY_POINT_GROUP)}
