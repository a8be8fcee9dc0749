"""Layers of Caffe without a window: activations, Scale, Power, Eltwise, Concat, Softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.nnie.caffe.layer import RECTIFIERS, CaffeLayer, Parameter, Site, Step, power_step
from tflq.converters.nnie.caffe.moves import tiles_step
from tflq.errors import UnsupportedError

Builder = Callable[[Site], list[CaffeLayer]]
EXPONENTS = (-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0)
"""Those that NNIE's Power takes."""


def plain(kind: str, parameters: Mapping[str, Parameter] | None = None) -> Builder:
    """Return the builder of a layer with fixed parameters."""
    return lambda site: [site.layer(kind, parameters)]


def leaky(site: Site) -> list[CaffeLayer]:
    """LEAKY_RELU."""
    slope = float(np.float32(site.node.attributes.real("alpha")))
    return [site.layer("ReLU", {"relu_param": {"negative_slope": slope}})]


def prelu(site: Site) -> list[CaffeLayer]:
    """PRELU with one slope for each channel, or one for all."""
    alpha = site.constant(1)
    channels = site.shape[-1]
    if alpha is None or alpha.size not in (1, channels) or alpha.size != alpha.reshape(-1, alpha.shape[-1]).shape[1]:
        shape = None if alpha is None else alpha.shape
        raise UnsupportedError(f"slopes of shape {shape}; Caffe's PReLU takes one for each of {channels} channels")
    fields = {"prelu_param": {"channel_shared": alpha.size == 1}}
    return [site.layer("PReLU", fields, (np.asarray(alpha, np.float32).reshape(-1),))]


def softmax(site: Site) -> list[CaffeLayer]:
    """SOFTMAX over the channels, Caffe's axis 1; a beta other than 1 is a Power in front of it."""
    beta = site.node.attributes.real("beta", 1.0)
    return site.chain(*([power_step(scale=beta)] if beta != 1 else []), ("Softmax", {}, ()))


def concatenation(site: Site) -> list[CaffeLayer]:
    """CONCATENATION of computed operands, not along the batch."""
    if len(site.bottoms) != len(site.node.inputs):
        raise UnsupportedError("an operand is a constant; Caffe's Concat takes computed ones")
    axis = site.axis(site.node.attributes.integer("axis"), len(site.graph.tensors[site.node.outputs[0]].shape))
    return [site.layer("Concat", {"concat_param": {"axis": axis}}), *site.rectifier()]


def power(**numbers: float) -> Builder:
    """Return the builder of a Power with fixed numbers."""
    return lambda site: site.chain(power_step(**numbers))


def raised(site: Site) -> list[CaffeLayer]:
    """POW by a constant that NNIE has."""
    exponent = site.constant(1)
    if exponent is None or exponent.size != 1 or float(exponent.item()) not in EXPONENTS:
        raise UnsupportedError(f"an exponent that is none of {', '.join(f'{e:g}' for e in EXPONENTS)}")
    return site.chain(power_step(power=float(exponent.item())))


def eltwise(operation: str) -> Builder:
    """Return the builder of ADD, SUB, MUL, DIV, MAXIMUM and MINIMUM.

    Two computed tensors of one shape: Eltwise; a division is a product with x^-1, a minimum -max(-a, -b). A computed
    tensor [N, C] or [N, 1, 1, C] times an image: Scale. A constant for all: Power. One for each channel: Scale.
    """

    def build(site: Site) -> list[CaffeLayer]:
        if len(site.bottoms) == 2:
            layers = _computed(site, operation)
        elif operation in ("max", "min"):
            layers = _clamped(site, operation)
        else:
            layers = _with_constant(site, operation)
        return [*layers, *site.rectifier()]

    return build


def _computed(site: Site, operation: str) -> list[CaffeLayer]:
    first, second = site.computed_images()
    if first != second:
        scaled = _scaled_by(site) if operation == "mul" else []
        return scaled or _tiled(site, operation)
    a, b = site.bottoms
    if operation == "div":
        inverse = CaffeLayer(f"{site.name}_inverse", "Power", (b,), (f"{site.name}_inverse",), power_step(power=-1)[1])
        fields: dict[str, Parameter] = {"operation": "PROD"}
        return [inverse, CaffeLayer(site.name, "Eltwise", (a, inverse.name), (site.top,), {"eltwise_param": fields})]
    if operation == "min":
        signs = [f"{site.name}_minus_{side}" for side in ("a", "b")]
        minus = power_step(scale=-1)[1]
        turned = [CaffeLayer(n, "Power", (x,), (n,), minus) for n, x in zip(signs, (a, b), strict=True)]
        top = f"{site.name}_max"
        largest = CaffeLayer(top, "Eltwise", (signs[0], signs[1]), (top,), {"eltwise_param": {"operation": "MAX"}})
        return [*turned, largest, CaffeLayer(site.name, "Power", (top,), (site.top,), minus)]
    fields = {"operation": {"add": "SUM", "sub": "SUM", "mul": "PROD", "max": "MAX"}[operation]}
    if operation == "sub":
        fields["coeff"] = (1, -1)
    return [site.layer("Eltwise", {"eltwise_param": fields})]


def _scaled_by(site: Site) -> list[CaffeLayer]:
    """Return x * s[c] of a computed s: a Scale with two bottoms, the second one [N, C]; nothing for other shapes."""
    images = site.computed_images()
    pixel = next((i for i, (_, h, w, _) in enumerate(images) if h == w == 1), None)
    if pixel is None or images[0][3] != images[1][3]:
        return []
    flat = f"{site.name}_flat"
    rows = CaffeLayer(flat, "Flatten", (site.bottoms[pixel],), (flat,))
    bottoms = (site.bottoms[1 - pixel], flat)
    return [rows, CaffeLayer(site.name, "Scale", bottoms, (site.top,), {"scale_param": {"axis": 0}})]


def _tiled(site: Site, operation: str) -> list[CaffeLayer]:
    """Return the layers of operands that broadcast: Tile makes them equal."""
    images = site.computed_images()
    whole = np.broadcast_shapes(*images)
    layers, bottoms = [], []
    for number, (image, bottom) in enumerate(zip(images, site.bottoms, strict=True)):
        counts = [(axis, whole[a]) for a, axis in ((1, 2), (2, 3), (3, 1)) if image[a] != whole[a]]
        for axis, count in counts:
            name = f"{site.name}_tile_{number}_{axis}"
            layers.append(CaffeLayer(name, "Tile", (bottom,), (name,), tiles_step(axis, count)[1]))
            bottom = name
        bottoms.append(bottom)
    equal = replace(site, bottoms=tuple(bottoms), sources=(site.node.outputs[0],) * 2)
    return [*layers, *_computed(equal, operation)]


def _constant(site: Site) -> tuple[Singles, bool]:
    """Return the constant operand, [1] or [C], and whether it comes first."""
    position = next(p for p, t in enumerate(site.node.inputs) if site.graph.tensors[t].is_constant)
    value = np.asarray(site.constant(position), np.float32)
    channels = site.output_image()[3]
    if value.size not in (1, channels) or (value.size > 1 and value.shape[-1] != channels):
        raise UnsupportedError(
            f"a constant for each place, {value.shape}; Caffe's Scale takes one for each channel, or one"
        )
    return value.reshape(-1), position == 0


def affine_of(operation: str, value: Singles, is_first: bool) -> tuple[Singles, Singles]:
    """Return the factor and the addend of ADD, SUB, MUL and DIV by a constant, which may come first."""
    one, none = np.ones_like(value), np.zeros_like(value)
    if operation in ("mul", "div"):
        with np.errstate(divide="ignore"):
            return (one / value if operation == "div" else value), none
    return (-one if operation == "sub" and is_first else one), (
        -value if operation == "sub" and not is_first else value
    )


def _with_constant(site: Site, operation: str) -> list[CaffeLayer]:
    """Return the layers of one constant operand; one of each channel repeats an image of one channel first."""
    value, is_first = _constant(site)
    repeats = [tiles_step(1, value.size)] if value.size > 1 and site.image()[2] == 1 else []
    if operation == "div" and is_first:
        inverse = power_step(power=-1)
        return (
            site.chain(inverse, power_step(scale=float(value[0])))
            if value.size == 1
            else _scale(site, value, np.zeros_like(value), *repeats, inverse)
        )
    factor, addend = affine_of(operation, value, is_first)
    if not np.isfinite(factor).all():
        raise UnsupportedError("a division by zero")
    if value.size == 1:
        return site.chain(power_step(float(factor[0]), float(addend[0])))
    return _scale(site, factor, addend, *repeats)


def _scale(site: Site, factor: Singles, addend: Singles, *front: Step) -> list[CaffeLayer]:
    """Return x * factor[c] + addend[c]: Scale; without a factor a Bias would do, Scale is the commoner layer."""
    fields: Mapping[str, Parameter] = {"scale_param": {"axis": 1, "bias_term": True}}
    return site.chain(*front, ("Scale", fields, (factor, addend)))


def _clamped(site: Site, operation: str) -> list[CaffeLayer]:
    """Return max(x, c) = ReLU(x - c) + c, or min(x, c) = c - ReLU(c - x), of one number for all.

    Raises:
        UnsupportedError: a number for each channel.
    """
    value, _ = _constant(site)
    if value.size != 1:
        raise UnsupportedError("a bound for each channel; one for all can be written")
    bound, sign = float(value[0]), 1.0 if operation == "max" else -1.0
    return site.chain(power_step(sign, -sign * bound), ("ReLU", {}, ()), power_step(sign, bound))


def rectifier(site: Site) -> list[CaffeLayer]:
    """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1 as operators of their own."""
    return site.chain(*RECTIFIERS[site.node.operator])


def squared_difference(site: Site) -> list[CaffeLayer]:
    """SQUARED_DIFFERENCE: the difference, then Power 2."""
    layers = _computed(site, "sub") if len(site.bottoms) == 2 else _with_constant(site, "sub")
    last, inside = layers[-1], f"{site.name}_difference"
    layers[-1] = CaffeLayer(inside, last.type, last.bottoms, (inside,), last.parameters, last.blobs)
    return [*layers, CaffeLayer(site.name, "Power", (inside,), (site.top,), power_step(power=2)[1])]


def hard_swish(site: Site) -> list[CaffeLayer]:
    """HARD_SWISH: x * (min(max(x + 3, 0), 6) / 6)."""
    steps: tuple[Step, ...] = (
        power_step(1, 3),
        ("ReLU", {}, ()),
        power_step(-1, 6),
        ("ReLU", {}, ()),
        power_step(-1 / 6, 1),
    )
    gate = site.chain(*steps)
    name = f"{site.name}_gate"
    last = gate[-1]
    gate[-1] = CaffeLayer(name, last.type, last.bottoms, (name,), last.parameters)
    fields: Mapping[str, Parameter] = {"eltwise_param": {"operation": "PROD"}}
    return [*gate, CaffeLayer(site.name, "Eltwise", (site.bottoms[0], name), (site.top,), fields)]
