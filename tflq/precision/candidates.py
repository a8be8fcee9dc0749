"""Which settings are worth trying: from what each layer adds alone, without running anything.

Source: docs/guides/search.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tflq.converters.precision import Costs
from tflq.precision.trial import Bits

_STEPS = (1, 2)
"""How many widths a layer gives up in an exchange; another one gains none, 1 or 2."""


@dataclass(frozen=True)
class NoiseModel:
    """Noise-to-signal ratios that add up.

    Attributes:
        costs: of settings, with the widths of each layer.
        base: where every layer is at its widest.
        added: for each layer, bits -> what they add to `base`; it does not fall as bits get fewer.
    """

    costs: Costs
    base: float
    added: tuple[Mapping[int, float], ...]

    def predict(self, bits: Bits) -> float:
        """Return base + sum of what the layers add."""
        return self.base + sum(noise[b] for noise, b in zip(self.added, bits, strict=True))

    @property
    def widths(self) -> list[list[int]]:
        """Of each layer, the widest first."""
        return [list(layer) for layer in self.costs.layers]


def noise_model(costs: Costs, base: float, alone: Sequence[Mapping[int, float]]) -> NoiseModel:
    """Make the model from the ratios that were measured with one layer narrowed at a time.

    Args:
        costs: of settings.
        base: ratio where every layer is at its widest.
        alone: for each layer, bits -> ratio; the widest is missing.
    """
    added = []
    for layer, found in zip(costs.layers, alone, strict=True):
        widest, *narrower = layer
        noise, worst = {widest: 0.0}, 0.0
        for bits in narrower:
            worst = max(worst, found[bits] - base)
            noise[bits] = worst
        added.append(noise)
    return NoiseModel(costs, base, tuple(added))


def path(model: NoiseModel) -> list[Bits]:
    """Return settings from the widest to the narrowest: each step narrows the layer whose noise costs least.

    Its price is the noise that it adds for each unit of the cost that it saves.
    """
    widths = model.widths
    places = [0] * len(widths)
    found = [_bits(model, places)]
    while True:
        steps = [(_price(model, i, p), i) for i, p in enumerate(places) if p + 1 < len(widths[i])]
        if not steps:
            return found
        places[min(steps)[1]] += 1
        found.append(_bits(model, places))


def exchanges(model: NoiseModel, bits: Bits, most_noise: float) -> list[Bits]:
    """Return cheaper settings near one: a layer one or two widths narrower, another one up to two wider.

    Args:
        model: predicts their noise.
        bits: the setting that they start from.
        most_noise: settings with a higher prediction are omitted.

    Returns:
        The cheapest first; equally cheap ones by prediction, then by bits.
    """
    cost = model.costs.of
    near = {other for other in _near(model, bits) if cost(other) < cost(bits)}
    quiet = [other for other in near if model.predict(other) <= most_noise]
    return sorted(quiet, key=lambda other: (cost(other), model.predict(other), other))


def _near(model: NoiseModel, bits: Bits) -> Iterator[Bits]:
    widths = model.widths
    places = [w.index(b) for w, b in zip(widths, bits, strict=True)]
    layers = range(len(places))
    for narrowed, widened, lost, gained in product(layers, layers, _STEPS, (0, *_STEPS)):
        moved = list(places)
        moved[narrowed] += lost
        moved[widened] -= gained
        if narrowed != widened and moved[narrowed] < len(widths[narrowed]) and moved[widened] >= 0:
            yield _bits(model, moved)


def _price(model: NoiseModel, layer: int, place: int) -> float:
    """Return the noise added for each unit saved by the next narrower width; what saves nothing comes last."""
    wide, narrow = model.widths[layer][place : place + 2]
    saved = model.costs.layers[layer][wide] - model.costs.layers[layer][narrow]
    noise = model.added[layer][narrow] - model.added[layer][wide]
    return noise / saved if saved > 0.0 else math.inf


def _bits(model: NoiseModel, places: Sequence[int]) -> Bits:
    return tuple(widths[p] for widths, p in zip(model.widths, places, strict=True))
