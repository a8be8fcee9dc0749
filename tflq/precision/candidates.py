"""Which settings are worth trying: from what each layer adds alone, without running anything (docs/search.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tflq.converters.precision import LayerWidths

Bits = tuple[int, ...]

_STEPS = (1, 2)
"""How many widths a layer gives up in an exchange; another one gains none, 1 or 2."""


@dataclass(frozen=True)
class NoiseModel:
    """Noise-to-signal ratios that add up.

    Attributes:
        layers: of the plan.
        base: where every layer is at its widest.
        added: for each layer, bits -> what they add to `base`; it does not fall as bits get fewer.
    """

    layers: tuple[LayerWidths, ...]
    base: float
    added: tuple[Mapping[int, float], ...]

    def predict(self, bits: Bits) -> float:
        """Return base + sum of what the layers add."""
        return self.base + sum(noise[b] for noise, b in zip(self.added, bits, strict=True))

    def size_bytes(self, bits: Bits) -> int:
        """Return the size of the layers that have a choice."""
        return sum(layer.width(b).size_bytes for layer, b in zip(self.layers, bits, strict=True))


def noise_model(layers: tuple[LayerWidths, ...], base: float, alone: Sequence[Mapping[int, float]]) -> NoiseModel:
    """Make the model from the ratios that were measured with one layer narrowed at a time.

    Args:
        layers: of the plan.
        base: ratio where every layer is at its widest.
        alone: for each layer, bits -> ratio; the widest is missing.
    """
    added = []
    for layer, found in zip(layers, alone, strict=True):
        noise, worst = {layer.widths[0].bits: 0.0}, 0.0
        for width in layer.widths[1:]:
            worst = max(worst, found[width.bits] - base)
            noise[width.bits] = worst
        added.append(noise)
    return NoiseModel(layers, base, tuple(added))


def path(model: NoiseModel) -> list[Bits]:
    """Return settings from the widest to the narrowest: each step narrows the layer that adds least noise per byte."""
    places = [0] * len(model.layers)
    found = [_bits(model, places)]
    while True:
        steps = [(_price(model, i, p), i) for i, p in enumerate(places) if p + 1 < len(model.layers[i].widths)]
        if not steps:
            return found
        places[min(steps)[1]] += 1
        found.append(_bits(model, places))


def exchanges(model: NoiseModel, bits: Bits, most_noise: float) -> list[Bits]:
    """Return smaller settings near one: a layer one or two widths narrower, another one up to two wider.

    Args:
        model: predicts their noise.
        bits: the setting that they start from.
        most_noise: settings with a higher prediction are omitted.

    Returns:
        The smallest first; equally small ones by prediction, then by bits.
    """
    size = model.size_bytes(bits)
    near = {other for other in _near(model, bits) if model.size_bytes(other) < size}
    quiet = [other for other in near if model.predict(other) <= most_noise]
    return sorted(quiet, key=lambda other: (model.size_bytes(other), model.predict(other), other))


def _near(model: NoiseModel, bits: Bits) -> Iterator[Bits]:
    widths = [[width.bits for width in layer.widths] for layer in model.layers]
    places = [w.index(b) for w, b in zip(widths, bits, strict=True)]
    layers = range(len(places))
    for narrowed, widened, lost, gained in product(layers, layers, _STEPS, (0, *_STEPS)):
        moved = list(places)
        moved[narrowed] += lost
        moved[widened] -= gained
        if narrowed != widened and moved[narrowed] < len(widths[narrowed]) and moved[widened] >= 0:
            yield _bits(model, moved)


def _price(model: NoiseModel, layer: int, place: int) -> float:
    """Return the noise added per byte saved by the next narrower width."""
    wide, narrow = model.layers[layer].widths[place : place + 2]
    noise = model.added[layer][narrow.bits] - model.added[layer][wide.bits]
    return noise / max(wide.size_bytes - narrow.size_bytes, 1)


def _bits(model: NoiseModel, places: Sequence[int]) -> Bits:
    return tuple(layer.widths[p].bits for layer, p in zip(model.layers, places, strict=True))
