"""The keys of the target."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings
from tflq.converters.tpu_mlir.tables import MODES
from tflq.graph import Graph
from tflq.interpreter.kernels.tpu_mlir.multiplier import MANUAL

KNOWN = (
    Setting("asymmetric", False, "zero points on int8 activations (--asymmetric of the tool)", per_layer=False),
    Setting("mode", "INT8", "what a layer computes in; others than INT8 go into the quantisation table", MODES),
    Setting(
        "formulas",
        "tool",
        "as the tool computes, or as its manual prints it: threshold/128, one shift in Add, normalised multipliers",
        ("tool", MANUAL),
        per_layer=False,
    ),
    Setting("calibration_table", "", "a calibration table of the tool to take ranges from", per_layer=False),
)


@dataclass(frozen=True)
class Options:
    """What was asked of the target.

    Attributes:
        asymmetric: whether int8 activations have zero points.
        manual: whether the manual's own formulas are used.
        calibration_table: path; empty to take ranges from the graph.
        modes: name of a node -> its mode.
    """

    asymmetric: bool
    manual: bool
    calibration_table: str
    modes: dict[str, str]


def options_of(graph: Graph, settings: Settings) -> Options:
    """Return the options of a graph.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    layers = settings.of_layers(graph)
    values = settings.values
    return Options(
        bool(values["asymmetric"]),
        values["formulas"] == MANUAL,
        str(values["calibration_table"]),
        {node.name: str(layer["mode"]) for node, layer in zip(graph.nodes, layers, strict=True)},
    )
