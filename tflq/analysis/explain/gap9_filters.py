"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in GAP9's integers (docs/gap9.md, 4 to 6)."""

from __future__ import annotations

from tflq.analysis.explain.filters import Products, layer_products
from tflq.analysis.explain.plain import multiplied_half_up, shift_half_up
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.interpreter.kernels.gap9.linear import FilterParams


def explain_linear(element: Element) -> Computed:
    """Explain a linear layer: stored bias + sum x * (w - Z_w), then M and N."""
    found, trace = getattr(element.node.params, "filter", None), Trace()
    assert isinstance(found, FilterParams)
    return _finish(trace, layer_products(trace, element, _note(found)), found)


def _note(found: FilterParams) -> str:
    return f", Z_w = {found.weight_zero_point} taken off"


def _finish(trace: Trace, products: Products, found: FilterParams) -> Computed:
    o, plain = products.channel, products.weights
    zero_point, rescaling = found.input_zero_point, found.rescaling
    folded = trace.add("zero-point correction", f"-Z_x * sum(w) = -({zero_point}) * {plain}", -zero_point * plain)
    bias = trace.add("bias", "", int(found.bias[o]))
    stored = int(rescaling.bias[o])
    output = trace.add("folded output zero point", "rnd(Z_y * S_y / (S_x * S_w))", int(found.offset[o]) - folded)
    trace.add("stored bias", f"{bias} + ({folded}) + ({output}), as the device holds it", stored)
    accumulator = trace.add("accumulator", f"{products.total} + ({stored})", products.total + stored)
    before = rescaling.pre_normalization
    if before:
        accumulator = trace.add(
            "pre-normalised", f"({accumulator} + 2^{before - 1}) >> {before}", shift_half_up(accumulator, before)
        )
    multiplier, shift = int(rescaling.mul_bias.multiplier[o]), int(rescaling.shift[o])
    rounded = multiplied_half_up(trace, accumulator, multiplier, shift)
    trace.clamp(rounded, rescaling.minimum, rescaling.maximum)
    return trace.done()
