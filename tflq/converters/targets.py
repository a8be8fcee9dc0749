"""Targets: the explicit table, and those that other packages add through the entry-point group `tflq.targets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from tflq.converters.settings import Setting, Settings
from tflq.errors import OptionError, TflqError
from tflq.graph import Array, Graph, Model, Tensor

ENTRY_POINT_GROUP = "tflq.targets"

Specification = Mapping[str, object]
Artefacts = Mapping[str, bytes]
"""File name -> content."""


@runtime_checkable
class Target(Protocol):
    """A device that a graph can be quantised for.

    The way is: settings = parse_settings(target.settings, ...); target.check(graph, settings) for what stands in the
    way; graph = target.quantise(graph, settings); tflq.interpreter.lower(graph) for the integers, and
    target.emit(graph, source) for the files.
    """

    @property
    def name(self) -> str:
        """As the user writes it, such as "gap9-ne16"."""

    @property
    def summary(self) -> str:
        """One line for lists."""

    @property
    def arithmetic(self) -> str:
        """The arithmetic whose kernels run its graphs."""

    @property
    def specification(self) -> Specification:
        """Bits, symmetry, granularity, multiplier format and limits, as data."""

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:
        """Return one line for each operator that cannot be mapped: which, why, and the way out."""

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return the target's graph: its types, its requantised constants, its inserted nodes.

        Raises:
            UnsupportedError: what `check` lists, all at once; or a value that the target cannot hold.
            OptionError: a setting that does not fit the graph.
        """

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return the codes of real numbers in a tensor of a quantised graph, rounded as the target's tool does."""

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the files of a quantised graph; nothing is written."""


_TABLE = {
    "aipu": "tflq.converters.aipu:AIPU",
    "gap9-ne16": "tflq.converters.gap9:NE16",
    "gap9-sq8": "tflq.converters.gap9:SQ8",
    "nnie": "tflq.converters.nnie:NNIE",
    "openvino": "tflq.converters.openvino:OPENVINO",
    "onnx": "tflq.converters.onnx:ONNX",
    "tpu-mlir": "tflq.converters.tpu_mlir:TPU_MLIR",
    "tflite": "tflq.converters.tflite_quantiser:TFLITE",
}


def target_names() -> tuple[str, ...]:
    """Return the names of all targets, those of other packages included."""
    return tuple(sorted({*_TABLE, *_foreign()}))


def find_target(name: str) -> Target:
    """Return a target by name; its module is imported now.

    Raises:
        OptionError: there is none of that name; the message lists those that exist.
        TflqError: another package's target does not have what a target needs, or has the name of one of ours.
    """
    foreign = _foreign()
    if name in foreign and name in _TABLE:
        raise TflqError(f"target '{name}' exists in tflq and again in {foreign[name]}; remove one")
    place = _TABLE.get(name) or foreign.get(name)
    if place is None:
        raise OptionError(f"unknown target '{name}'; there are {', '.join(target_names())}")
    module, _, attribute = place.partition(":")
    found: object = getattr(import_module(module), attribute)
    if not isinstance(found, Target):
        raise TflqError(
            f"target '{name}' of {place} lacks one of: name, summary, arithmetic, specification, "
            "settings, check, quantise, encode, emit"
        )
    return found


def _foreign() -> dict[str, str]:
    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINT_GROUP)}
