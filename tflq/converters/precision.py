"""What a search of precision chooses from: a target's widths for single layers, and its promotions of the last ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tflq.converters.settings import LayerRule, Settings, Value
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import ABSENT, Affine, Graph, Tensor

Quantize = Callable[[Graph, Settings], Graph]
GLOBAL_CALIBRATION = "global_calibration"
"""Key of targets whose tool fits weights across layers: the objective by which recovery does so."""

Offer = tuple[int, Mapping[str, Value]]
"""Bits, and the settings that choose them."""

_DECIMALS = 6
"""Of a cost: the order in which layers are added must not decide which of two settings is the smaller."""


@dataclass(frozen=True)
class Width:
    """One precision that a layer can have.

    Attributes:
        bits: how reports call it.
        size_bytes: what the layer then takes.
        values: the settings that choose it, key -> value.
    """

    bits: int
    size_bytes: int
    values: Mapping[str, Value]


@dataclass(frozen=True)
class LayerWidths:
    """A layer that has a choice.

    Attributes:
        index: of its node in the graph that is quantized.
        name: of that node.
        operator: of that node.
        widths: at least two, the widest first.
    """

    index: int
    name: str
    operator: str
    widths: tuple[Width, ...]

    def width(self, bits: int) -> Width:
        """Return one of the widths.

        Raises:
            OptionError: there is no such width.
        """
        for width in self.widths:
            if width.bits == bits:
                return width
        allowed = ", ".join(str(width.bits) for width in self.widths)
        raise OptionError(f"layer '{self.name}' has no width of {bits} bits; allowed are {allowed}")


@dataclass(frozen=True)
class Costs:
    """Costs of settings, where those of layers add up.

    Attributes:
        fixed: of all that has no choice.
        layers: for each layer with a choice, bits -> cost, the widest first.
    """

    fixed: float
    layers: tuple[Mapping[int, float], ...]

    def of(self, bits: Sequence[int]) -> float:
        """Return the cost where each layer has the bits in its place, to 1e-6."""
        return round(self.fixed + sum(layer[b] for layer, b in zip(self.layers, bits, strict=True)), _DECIMALS)


@dataclass(frozen=True)
class PrecisionPlan:
    """What a target lets one choose for a graph. Sizes of layers add up.

    Attributes:
        layers: in order of execution; those without a choice are omitted.
        fixed_bytes: size of the layers without a choice.
        counted: what sizes count, in words: "weights".
    """

    layers: tuple[LayerWidths, ...]
    fixed_bytes: int
    counted: str

    @property
    def sizes(self) -> Costs:
        """What settings take, in bytes."""
        return Costs(self.fixed_bytes, tuple({w.bits: w.size_bytes for w in layer.widths} for layer in self.layers))


@dataclass(frozen=True)
class Promotion:
    """How a target gives layers more bits.

    Attributes:
        name: in words.
        values: `key=value,...` of each such layer.
    """

    name: str
    values: str


def packed_bytes(elements: int, bits: int) -> int:
    """Return ceil(elements * bits / 8)."""
    return -(-elements * bits // 8)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor's quantized values, those below a byte packed."""
    bits = tensor.quantization.bits if isinstance(tensor.quantization, Affine) else 8 * tensor.dtype.storage.itemsize
    return packed_bytes(tensor.size, bits)


def probed_plan(
    quantize: Quantize,
    graph: Graph,
    settings: Settings,
    offered: Sequence[tuple[int, Mapping[str, Value]]],
    counted: str,
) -> PrecisionPlan:
    """Find the choices by trying them: quantize once for each node and width.

    With t(b) the bytes of the whole graph where one node has b bits, b0 its narrowest and b1 its widest width:
    size(b) = b0 * (t(b1) - t(b0)) // (b1 - b0) + t(b) - t(b0), what depends on the width, whatever tensor that is.
    Nodes that no width changes have no choice; widths that the target refuses are not offered.

    Args:
        quantize: the target's; constants and activations of its graphs are Affine.
        graph: with ranges.
        settings: the user's; single layers are changed in what they give.
        offered: (bits, settings that choose it), the widest first.
        counted: what sizes count, in words.

    Raises:
        UnsupportedError, OptionError: the graph cannot be quantized with the user's settings.
    """
    keys = {key for _, values in offered for key in values}
    whole = graph_bytes(quantize(graph, settings))
    layers, fixed = [], whole
    for index, node in enumerate(graph.nodes):
        if settings.names(graph, index, keys):
            continue
        totals = {bits: _total(quantize, graph, settings, index, values) for bits, values in offered}
        found = {bits: total for bits, total in totals.items() if total is not None}
        if len(set(found.values())) < 2:
            continue
        most, least = max(found), min(found)
        unchanged = found[least] - least * (found[most] - found[least]) // (most - least)
        widths = tuple(Width(bits, found[bits] - unchanged, values) for bits, values in offered if bits in found)
        layers.append(LayerWidths(index, node.name, node.operator, widths))
        fixed -= whole - unchanged
    return PrecisionPlan(tuple(layers), fixed, counted)


def graph_bytes(graph: Graph) -> int:
    """Return the bytes of all constants that nodes read and of all tensors that they write, one sample."""
    used = {t for node in graph.nodes for t in (*node.inputs, *node.outputs) if t != ABSENT}
    return sum(tensor_bytes(graph.tensors[t]) for t in sorted(used))


def _total(quantize: Quantize, graph: Graph, settings: Settings, index: int, values: Mapping[str, Value]) -> int | None:
    changed = Settings(settings.values, (*settings.rules, LayerRule(str(index), values)))
    try:
        return graph_bytes(quantize(graph, changed))
    except (UnsupportedError, OptionError):
        return None
