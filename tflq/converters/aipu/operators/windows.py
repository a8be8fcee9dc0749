"""Layers over windows of an image: Pooling, MaxPoolingWithArgMax, UpsampleByIndex, Resize.

Source: docs/rules/aipu/operators.md.
"""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.descriptor import Layer, Row, all_values, plain, with_all_values
from tflq.converters.aipu.emitted import TYPED, Computed, Emitted, FromFile, Lowered, Params, factor_keys
from tflq.converters.aipu.translation import Translation
from tflq.graph import Array, Attributes, Graph, Node
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.grid_sample import FRACTIONS, PIXELS, SHIFTS, GridSampleParams
from tflq.interpreter.kernels.aipu.resize import WEIGHT_BITS, ResizeParams
from tflq.interpreter.operands.sliding_windows import window_of


def _emit_resize(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, ResizeParams)
    return Emitted(keys={"interp_shift_value": WEIGHT_BITS if params.weights else 0, "interp_shift_type": "int8"})


def window_keys(graph: Graph, node: Node, kernel: tuple[int, int]) -> dict[str, Attribute]:
    """Return the keys of a window: kernel, stride, padding as it comes out, dilation."""
    x = graph.tensors[node.inputs[0]]
    found = window_of(node.attributes, (x.shape[1], x.shape[2]), kernel)
    return {
        "kernel_x": kernel[1],
        "kernel_y": kernel[0],
        "stride_x": found.stride[1],
        "stride_y": found.stride[0],
        "pad_left": found.left,
        "pad_right": found.right,
        "pad_top": found.top,
        "pad_bottom": found.bottom,
        "dilation_x": found.dilation[1],
        "dilation_y": found.dilation[0],
    }


def map_pool(work: Translation, node: Node) -> None:
    """Map AVERAGE_POOL_2D, MAX_POOL_2D."""
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    is_average = node.operator == "average_pool_2d"
    keys: dict[str, Attribute] = {"method": "AVG" if is_average else "MAX", "ceil_mode": False}
    if is_average:
        keys["count_include_pad"] = False
    work.append(node, "pooling", {}, Attributes({**window_keys(work.source, node, kernel), **keys}))


def map_resize(work: Translation, node: Node) -> None:
    """Map RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR."""
    is_half = node.attributes.boolean("half_pixel_centers", False)
    is_nearest = node.operator == "resize_nearest_neighbor"
    half = "TF_HALF_PIXEL_FOR_NN" if is_nearest else "HALF_PIXEL"
    aligned = "ALIGN_CORNERS" if node.attributes.boolean("align_corners", False) else "ASYMMETRIC"
    keys: dict[str, Attribute] = {
        "method": "NEAREST" if is_nearest else "BILINEAR",
        "size": work.shape(node.outputs[0]),
        "mode": half if is_half else aligned,
        "antialias": False,
        "exclude_outside": False,
    }
    if is_nearest:
        keys["nearest_mode"] = "ROUND_PREFER_CEIL" if aligned == "ALIGN_CORNERS" and not is_half else "FLOOR"
    work.append(node, "resize", {}, Attributes(keys))


def _emit_grid_sample(layer: Lowered) -> Emitted:
    """Tables of x and y where there are any; M and N, F of each axis."""
    params = layer.node.params
    assert isinstance(params, GridSampleParams)
    axes, is_table = len(params.sizes), bool(params.pixels)
    constants: dict[str, Array] = {}
    if is_table:
        constants = {key: t.astype(np.uint16) for key, t in zip(FRACTIONS, params.parts, strict=True)}
        constants |= {key: t.astype(np.int16) for key, t in zip(PIXELS, params.pixels, strict=True)}
    keys = factor_keys(TYPED, params.rescale.split(), "uint8" if is_table else "uint16")
    shifts = {key: int(f) for key, f in zip(SHIFTS[:axes], params.fractions, strict=True)}
    return Emitted(constants, {**keys, **shifts})


def _read_grid_sample(file: FromFile) -> Params:
    found = {key: file.constants[key] for key in (*PIXELS, *FRACTIONS) if key in file.constants}
    shifts = {key: numbers for key in SHIFTS if (numbers := file.numbers(key)) is not None}
    rescale = file.multiplier()
    return {**found, **shifts, **({} if rescale is None else {"rescale": rescale})}


LAYERS = {
    "grid_sample": Layer("GridSample", types=all_values, emitted=(Computed(_emit_grid_sample, _read_grid_sample),)),
    "max_pooling_with_arg_max": Layer(
        "MaxPoolingWithArgMax", types=lambda _, o, __: (with_all_values(o.input(0)), plain(32, True))
    ),
    "global_pool": Layer("GlobalPool"),
    "pooling": Layer("Pooling"),
    "resize": Layer("Resize", types=all_values, emitted=(Computed(_emit_resize),)),
    "upsample_by_index": Layer("UpsampleByIndex", types=all_values),
}


# fmt: off
DOCS = (
    Row("4.4", "AveragePooling2D", "sum(x + zp), M / 2^N of 1 / area with 8 bits at every position", "g r",
        layer="Pooling AVG", tflite="AVERAGE_POOL_2D; MEAN over both axes of an image"),
    Row("4.43", "MaxPooling2D", "largest quantized value, padding never wins", "g r", layer="Pooling MAX",
        tflite="MAX_POOL_2D"),
    Row("4.44", "MaxPoolingWithArgMax", "largest quantized value and its place, counted by flatten_dim", "g m",
        signed="passes; index int32"),
    Row("4.58", "Resize", "NEAREST: a gather; BILINEAR: RNE(sum floor(w * 2^13 + 0.5) * p / 2^13); coordinates in "
        "float64 from the sizes", "g r", tflite="RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR",
        restriction="no antialias; NEAREST from TFLite without align_corners"),
    Row("4.78", "UpsampleByIndex", "quantized values put where indices say, -zp elsewhere, the later of two wins",
        "g m"),
    Row("-", "(grid sample)", "a + ((b - a) * t >> F) along x, y, z at q = clamp16(((g + zp_g) * M >> N) + (n - 1) * "
        "2^(F - 1)), pixel q >> F, t the rest; grids of 8 bits by tables", "v", layer="GridSample",
        restriction="no REFLECTION; grids of 8 bits signed, of images; test_grid_sample.py"),
    Row("-", "(global pool)", "as Pooling, over the whole image", "v", layer="GlobalPool",
        restriction="test_more_layers.py"),
)
# fmt: on
