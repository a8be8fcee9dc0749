"""What a graph of Compass's layers keeps of the file it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tflq.converters.calibration import samples_of
from tflq.graph import Graph


@dataclass(frozen=True)
class Origin:
    """Names that the graph itself has no place for.

    Attributes:
        name: of the model.
        inputs: tensor name of a graph input -> name of its Input layer.
        order: names of the layers in the order of the float IR.
        sources: name of a tensor -> index of the tensor of the TFLite graph that it stands for; empty without one.
        settings: name of a layer -> name of the node of the TFLite graph whose settings it has; empty without one.
        ahead: name of a layer -> keys in front of its constants in a file; None where the Parser's rule holds.
        departures: Name of a layer that follows the model and not the Parser -> the Parser's result.
        floats: the float layers that a quantized graph was made of; None in a float graph or that of a quantized IR.
    """

    name: str
    inputs: dict[str, str]
    order: tuple[str, ...]
    sources: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    ahead: Mapping[str, tuple[str, ...]] | None = None
    departures: Mapping[str, str] = field(default_factory=dict)
    floats: Graph | None = field(default=None, repr=False, compare=False)


def uncalibrated(graph: Graph) -> Graph:
    """Return the graph with its origin where a calibration left its samples in front of it."""
    samples = samples_of(graph)
    return graph if samples is None or samples.origin is None else replace(graph, extra=samples.origin)
