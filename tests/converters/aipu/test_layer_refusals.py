"""What the kernels of single layers refuse, each beside its neighbor that they take; the words name both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tests.converters.aipu.recording import ranged
from tests.converters.aipu.single_layers import (
    IMAGE,
    OneLayer,
    linear,
    one,
    pool,
    real,
    recurrent,
    resized,
    transposed,
    whole,
)
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.settings import parse_settings
from tflq.errors import GraphError, TflqError, UnsupportedError
from tflq.graph import Graph
from tflq.interpreter import lower

WIDE = ("activation_bits=16", "lut_items_in_bits=10")
Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Border:
    """A layer that is taken, the change that is not, and the words of its refusal."""

    taken: OneLayer
    change: Mapping[str, Any]
    words: str
    settings: tuple[str, ...] = ()
    limits: Limits = field(default_factory=dict)
    wrong_limits: Limits = field(default_factory=dict)
    error: type[TflqError] = UnsupportedError

    @property
    def refused(self) -> OneLayer:
        """The layer with other keys, or other parts of it (capital letters)."""
        parts = {key.lower(): value for key, value in self.change.items() if key.isupper()}
        keys = {key: value for key, value in self.change.items() if not key.isupper()}
        changed = replace(self.taken, **parts)
        return replace(changed, keys={**changed.keys, **keys})


def lowered(layer: OneLayer, settings: tuple[str, ...], limits: Limits) -> Graph:
    """Quantize and lower a layer whose tensors all have the range -2..3, or their own."""
    graph = graph_of(layer.network())
    usual = {tensor.name: (-2.0, 3.0) for tensor in graph.tensors if tensor.data is None and tensor.dtype.is_floating}
    graph = ranged(graph, {**usual, **limits})
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)


def images(operator: str, *shapes: tuple[int, ...], new: tuple[int, ...], **keys: Any) -> OneLayer:
    return OneLayer(operator, shapes, (new,), keys)


NORM = OneLayer("layer_norm", ((2, 5),), ((2, 5),), {"axis": (1,), "epsilon": 0.01}, {"weights": (5,), "biases": (5,)})
GRID = images("grid_sample", (1, 5, 6, 3), (1, 4, 3, 2), new=(1, 4, 3, 3), method="NEAREST", padding_mode="ZEROS",
              align_corners=False)  # fmt: skip
LONG = images("grid_sample", (1, 16383, 1, 1), (1, 2, 1, 2), new=(1, 2, 1, 1), method="NEAREST", padding_mode="ZEROS",
              align_corners=False)  # fmt: skip
CUBES = OneLayer(
    "convolution_3d",
    ((1, 3, 3, 3, 4),),
    ((1, 3, 3, 3, 4),),
    {"num_output": 4, "group": 2, "with_activation": "NONE"}
    | {f"{key}_{axis}": 1 for key in ("kernel", "stride", "dilation") for axis in "xyz"}
    | {f"pad_{axis}_{end}": 0 for axis in "xyz" for end in ("begin", "end")},
    {"weights": (4, 1, 1, 1, 2), "biases": (4,)},
)
REGIONS = images("roi_align", (1, 8, 8, 2), (3, 5), new=(3, 2, 2, 2), method="AVG", pooled_shape=(2, 2), sample=(2, 2),
                 spatial_scale_value=(0.25, 0.25), coordinate_transformation_mode="HALF_PIXEL")  # fmt: skip
PARTS = OneLayer(
    "pyramid_roi_align",
    ((1, 3, 4), *((1, n, n, 2) for n in (16, 8, 4, 2))),
    ((3, 2, 2, 2),),
    {"resize_width": 2, "resize_height": 2, "proposal_normalized": True},
)
BOXES = images("bounding_box", (1, 3, 4), (1, 3, 4), new=(1, 3, 4), coordinate_order="YX")
WHOLE = (whole(0, 4),)
BOX = {"x0": (0.0, 1.0)}

BORDERS = {
    "biases": Border(
        OneLayer("bias_add", (IMAGE,), (IMAGE,), {}, {"biases": (4,)}),
        {"CONSTANTS": {"biases": (5,)}},
        "biases (5,) on an axis of 4; allowed is one for each place",
    ),
    "biases of rows": Border(
        OneLayer("bias_add", (IMAGE,), (IMAGE,), {"axis": 1}, {"biases": (5,)}),
        {"axis": 2},
        "biases (5,) on an axis of 6; allowed is one for each place",
    ),
    "gru rows": Border(
        recurrent("gru_v3", "forward", ("H",)),
        {"CONSTANTS": {"weights": (16, 9), "biases": (15,)}},
        "weights (16, 9); allowed is (15, 9)",
        error=GraphError,
    ),
    "gru columns": Border(
        recurrent("gru_v1", "forward", ("H",)),
        {"CONSTANTS": {"weights": (15, 10), "biases": (20,)}},
        "weights (15, 10); allowed is (15, 9)",
        error=GraphError,
    ),
    "gru activations": Border(
        recurrent("gru_v3", "forward", ("H",)),
        {"activations": ("SIGMOID", "RELU")},
        "activations=SIGMOID,RELU; allowed are SIGMOID,TANH",
    ),
    "gru outputs": Border(
        recurrent("gru_v3", "forward", ("H",)), {"out_sequence": ("Y",)}, "out_sequence=Y; allowed are H, Hn"
    ),
    "lstm columns": Border(
        recurrent("basic_lstm", "forward", ("H",)),
        {"CONSTANTS": {"weights": (20, 10), "biases": (20,)}},
        "weights (20, 10); allowed is (20, 9)",
        error=GraphError,
    ),
    "lstm activations": Border(
        recurrent("basic_lstm", "forward", ("H",)),
        {"activations": ("SIGMOID", "TANH", "RELU")},
        "activations=SIGMOID,TANH,RELU; allowed are SIGMOID,TANH,TANH",
    ),
    "lstm outputs": Border(
        recurrent("basic_lstm", "forward", ("Y",)), {"out_sequence": ("Hn",)}, "out_sequence=Hn; allowed are Y, H, C"
    ),
    "lstm threshold": Border(
        recurrent("basic_lstm", "forward", ("H",)),
        {"threshold": 0.5},
        "threshold: limits within the layer; allowed is cell_clip",
    ),
    "groups of cubes": Border(
        CUBES, {"group": 1}, "group=1: weights (4, 1, 1, 1, 2) do not fit an input of (1, 3, 3, 3, 4)"
    ),
    "axes of cubes": Border(
        CUBES,
        {"CONSTANTS": {"weights": (4, 1, 1, 2), "biases": (4,)}},
        "group=2: weights (4, 1, 1, 2) do not fit an input of (1, 3, 3, 3, 4)",
    ),
    "count of falling limits": Border(
        one("count", (1, 40), (1, 6), min=2.0, max=-1.0, nbins=6, discrete=True),
        {"discrete": False},
        "min and max become 85 and -42; allowed is min below max",
        limits={"x0": (-3.0, 3.0)},
    ),
    "count of one value": Border(
        one("count", (1, 40), (1, 6), min=-1.0, max=2.0, nbins=6, discrete=False),
        {"max": -1.0},
        "min and max become -42 and -42; allowed is min below max",
        limits={"x0": (-3.0, 3.0)},
    ),
    "logical": Border(
        images("logical", IMAGE, IMAGE, new=IMAGE, method="LESS"),
        {"method": "NAND"},
        "method=NAND; allowed is EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, AND, OR, XOR, NOT",
    ),
    "eltwise": Border(
        images("eltwise", IMAGE, IMAGE, new=IMAGE, method="MIN"),
        {"method": "MEAN"},
        "method=MEAN; allowed are",
    ),
    "resize": Border(
        resized("BILINEAR", "ASYMMETRIC", (7, 9)), {"method": "CUBIC"}, "method=CUBIC, mode=ASYMMETRIC, nearest_mode="
    ),
    "mode of resize": Border(resized("BILINEAR", "ASYMMETRIC", (7, 9)), {"mode": "HALF"}, "mode=HALF, nearest_mode="),
    "rounding of resize": Border(
        resized("NEAREST", "ASYMMETRIC", (7, 9), "CEIL"), {"nearest_mode": "ROUND"}, "nearest_mode=ROUND; allowed are"
    ),
    "smooth resize": Border(
        resized("BILINEAR", "ASYMMETRIC", (7, 9)), {"antialias": True}, "antialias=true; allowed is false"
    ),
    "batches of places": Border(
        OneLayer("gather_nd", ((2, 3, 4), (2, 1)), ((2, 3, 4),), {"batch_dims": 0}, {}, (real(), *WHOLE)),
        {"batch_dims": 1},
        "GatherND with batch_dims=1; allowed is 0",
    ),
    "filter": Border(
        OneLayer("filter", ((4, 3), (4,)), ((4, 3), ()), {"axis": 0, "num": 1}, {}, (real(), *WHOLE)),
        {"axis": 1},
        "'x0' has 3 slices on axis 1; allowed are the selector's 4",
    ),
    "grid without sign": Border(
        GRID,
        {},
        "a grid of 8 bits must be signed, of images; give it activation_bits=16",
        wrong_limits={"x1": (0.0, 1.0)},
    ),
    "long grid": Border(
        LONG,
        {"INPUTS": ((1, 16384, 1, 1), (1, 2, 1, 2))},
        "places of the grid beyond 15 bits; allowed are images and grids of less",
        settings=WIDE,
        limits={"x1": (-1.0, 1.0)},
    ),
    "grid's method": Border(GRID, {"method": "CUBIC"}, "method=CUBIC; allowed is BILINEAR, NEAREST, LINEAR"),
    "grid's border": Border(GRID, {"padding_mode": "REFLECTION"}, "padding_mode=REFLECTION; allowed is ZEROS, BORDER"),
    "lrn": Border(
        one("lrn", IMAGE, method="WITHIN_CHANNEL", size=3, bias=1.0, alpha=0.5, beta=0.75),
        {"size": 4},
        "method=WITHIN_CHANNEL, size=4; allowed are ACROSS_CHANNELS, and WITHIN_CHANNEL with an odd size",
    ),
    "regions of images": Border(
        images("max_roi_pool", (1, 8, 8, 2), (3, 5), new=(3, 2, 2, 2), pooled_shape=(2, 2), spatial=(0.25, 0.25)),
        {"INPUTS": ((2, 8, 8, 2), (3, 5))},
        "features of 2 images; allowed is 1: cut the batch in front of it",
    ),
    "one_hot": Border(
        OneLayer("one_hot", ((3,),), ((3, 4),), {"axis": 1, "values": (0.0, 1.0), "depth": 4}, {}, WHOLE),
        {"DRAWS": (real(0, 1),)},
        "its indices are quantized numbers; allowed are integers",
    ),
    "pad": Border(
        one("pad", IMAGE, (1, 6, 6, 4), mode="REFLECT", pads=np.array([[0, 0], [1, 0], [0, 0], [0, 0]])),
        {"mode": "EDGE"},
        "mode=EDGE; allowed is CONSTANT, REFLECT, SYMMETRIC",
    ),
    "reshape": Border(
        OneLayer("reshape", ((2, 6),), ((3, 4),), {"shape": (3, 4)}),
        {"OUTPUTS": ((3, 5),)},
        "(2, 6) cannot become (3, 5): another number of elements",
        error=GraphError,
    ),
    "groups": Border(
        linear("convolution", (2, 2), (1, 1), (0, 0, 0, 0), group=2),
        {"group": 1},
        "group=1: weights of 2 channels do not fit an input of 4",
    ),
    "groups of a transposed filter": Border(
        transposed((2, 2), (1, 1), (0, 0, 0, 0)), {"group": 2}, "group=2; allowed is 1"
    ),
    "batch_norm": Border(
        OneLayer("batch_norm", (IMAGE,), (IMAGE,), {"axis": 3, "epsilon": 0.0}, {"weights": (4,), "biases": (4,)}),
        {"axis": 2, "CONSTANTS": {"weights": (6,), "biases": (6,)}},
        "axis=2; allowed is the last, 3",
    ),
    "no weights": Border(
        linear("convolution", (2, 2), (1, 1), (0, 0, 0, 0)),
        {"CONSTANTS": {"biases": (4,)}},
        "weights must be a constant of the layer",
        error=TflqError,
    ),
    "short rows": Border(
        NORM,
        {"INPUTS": ((2, 4),), "OUTPUTS": ((2, 4),), "CONSTANTS": {"weights": (4,), "biases": (4,)}},
        "4 elements are normalized together; allowed at 8 bits are 5",
    ),
    "weights of rows": Border(
        NORM,
        {"CONSTANTS": {"weights": (6,), "biases": (6,)}},
        "weights (6,) for the axes (1,) of (2, 5): allowed is one each",
    ),
    "normalization": Border(
        one("normalization", IMAGE, axis=(3,), method="L2", epsilon=1e-6), {"method": "L1"}, "method=L1; allowed is L2"
    ),
    "reduce": Border(
        one("reduce", IMAGE, (1, 5, 6, 1), axis=(3,), method="SUM"), {"method": "MODE"}, "method=MODE; allowed is"
    ),
    "cumulate": Border(
        one("cumulate", IMAGE, axis=3, method="SUM", exclusive=False, reverse=False),
        {"method": "MAX"},
        "method=MAX; allowed is SUM, PROD",
    ),
    "segments": Border(
        OneLayer("segment_reduce", ((4, 3), (4,)), ((4, 3),), {"method": "SUM"}, {}, (real(), *WHOLE)),
        {"method": "MEAN"},
        "method=MEAN; allowed is SUM",
    ),
    "regions' method": Border(REGIONS, {"method": "MIN"}, "method=MIN; allowed is AVG, MAX"),
    "regions' corners": Border(
        REGIONS,
        {"coordinate_transformation_mode": "PIXEL"},
        "coordinate_transformation_mode=PIXEL; allowed is HALF_PIXEL, OUTPUT_HALF_PIXEL",
    ),
    "order of boxes": Border(BOXES, {"coordinate_order": "XY"}, "coordinate_order=XY; allowed is YX", limits=BOX),
    "coarse boxes": Border(
        BOXES,
        {},
        "leave no shift; allowed is a wider range",
        limits=BOX | {"x1": (-1.044e7, 1.044e7)},
        wrong_limits=BOX | {"x1": (-1.045e7, 1.045e7)},
    ),
    "bins of parts": Border(
        PARTS,
        {"resize_height": 1, "OUTPUTS": ((3, 1, 2, 2),)},
        "resize_height and resize_width are (1, 2); allowed is 2 or more",
        limits=BOX,
    ),
    "scales of parts": Border(
        PARTS,
        {},
        "allowed is one for all: give them one range",
        limits=BOX,
        wrong_limits=BOX | {"x3": (-4.0, 4.0)},
    ),
    "elements": Border(
        OneLayer(
            "scatter_elements",
            ((3, 4), (1, 4), (1, 4)),
            ((3, 4),),
            {"axis": 1, "reduction": "ADD"},
            {},
            (real(), *WHOLE, real()),
        ),
        {"reduction": "MUL"},
        "reduction=MUL; allowed is ADD, MAX, MIN, NONE",
    ),
    "scatter": Border(
        OneLayer("scatter_nd", ((6, 4), (5, 1), (5, 4)), ((6, 4),), {"reduction": "MUL"}, {}, (real(), *WHOLE, real())),
        {"reduction": "DIV"},
        "reduction=DIV; allowed is ADD, MAX, MIN, MUL, NONE",
    ),
    "pool": Border(pool("AVG", (2, 2), (1, 1), (0, 0, 0, 0)), {"method": "L2"}, "method=L2; allowed is AVG, MAX"),
    "softmax": Border(
        one("softmax", (1, 4096), axis=1),
        {"INPUTS": ((1, 4097),), "OUTPUTS": ((1, 4097),)},
        "softmax over 4097 terms; allowed are 4096",
    ),
    "arg": Border(
        one("arg_min_max", IMAGE, (1, 5, 6, 1), axis=3, method="MIN"),
        {"method": "MED"},
        "method=MED; allowed is MIN, MAX",
    ),
    "activation": Border(
        one("activation", IMAGE, method="RELU6"), {"method": "RELU7"}, "method=RELU7; allowed is RELU, RELU6, CLIP"
    ),
    "fused": Border(
        linear("convolution", (1, 1), (1, 1), (0, 0, 0, 0)),
        {"with_activation": "TANH"},
        "with_activation=TANH; allowed is NONE, RELU, RELU6, CLIP, LEAKYRELU",
    ),
}


@pytest.mark.parametrize("name", BORDERS)
def test_a_layer_is_taken_and_its_neighbor_refused(name: str) -> None:
    border = BORDERS[name]
    lowered(border.taken, border.settings, border.limits)
    with pytest.raises(border.error, match=re.escape(border.words)):
        lowered(border.refused, border.settings, border.wrong_limits or border.limits)
