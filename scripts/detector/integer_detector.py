"""The detector in integers, from the codes of the image to the codes of the boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detector.anchors import anchors
from detector.average_precision import Detections
from detector.float_detector import DETECTIONS, REGIONS, Found, Masks, Trace, of_classes
from detector.graphs import Part, Parts
from detector.integer_layers import BOX, detection_graph, pooling_graph, proposal_graph
from detector.network import POOLED, POOLED_MASK
from detector.scenes import CLASSES
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.operators.boxes import shared_map
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, Array, Graph, Tensor, dequantise
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.scales import affine_of, encode

Reals = NDArray[np.float64]

_SCORES = ("rpn/class", "rpn/p2", "rpn/p3", "rpn/p4", "rpn/p5", "head/class", "head/probabilities")
_DELTAS = ("rpn/box", "head/box")
_BOTH = ("join",)


@dataclass(frozen=True)
class Precision:
    """Widths of activations; weights have 8 bits.

    Attributes:
        name: for the table.
        wide: layers of the network with 16 bits; the others have 8.
        anchor_bits: width of the anchors' coordinates.
    """

    name: str
    wide: tuple[str, ...] = ()
    anchor_bits: int = 8


INT8 = Precision("int8")
SCORES = Precision("16-bit scores", (*_SCORES, *_BOTH))
BOXES = Precision("16-bit boxes", (*_DELTAS, *_BOTH), 16)
MIXED = Precision("int8/int16", (*_SCORES, *_DELTAS, *_BOTH), 16)
"""Scores and deltas come from int8 convolutions and have 16 bits from there on, coordinates too."""


def calibrated(parts: Parts, trace: Trace, samples: int, strategy: str = "mean") -> Parts:
    """Return the parts with the ranges of the first samples of a float run."""
    options = StatisticsOptions(strategy=strategy)
    inputs = (trace.images, trace.pooled, trace.pooled_masks)
    graphs = [
        calibrate(part.graph, [np.ascontiguousarray(x[:samples])], options)
        for part, x in zip((parts.first, parts.head, parts.mask), inputs, strict=True)
    ]
    return Parts(*(replace(p, graph=g) for p, g in zip((parts.first, parts.head, parts.mask), graphs, strict=True)))


class IntegerDetector:
    """Engines of every step; codes go from one to the next."""

    def __init__(self, parts: Parts, precision: Precision) -> None:
        """Quantise the parts, which have ranges."""
        first = _quantised(parts.first, precision)
        *pyramid, scores, deltas = (first.tensors[t] for t in first.outputs)
        pooled = shared_map(pyramid)
        head, mask = (_quantised(_reading(part, pooled), precision) for part in (parts.head, parts.mask))
        chances, moves = (head.tensors[t] for t in head.outputs)
        box = _anchor_type(precision.anchor_bits)
        codes = encode(anchors()[None], box).astype(np.uint8 if box.bits == 8 else np.uint16)
        self.first, self.head, self.mask = Engine(first), Engine(head), Engine(mask)
        self.propose = Engine(proposal_graph(scores, deltas, codes, box), "aipu")
        self.pool = Engine(pooling_graph(pyramid, pooled, REGIONS, POOLED), "aipu")
        self.pool_masks = Engine(pooling_graph(pyramid, pooled, DETECTIONS, POOLED_MASK), "aipu")
        self.finish = Engine(detection_graph(chances, moves), "aipu")

    def detect(self, images: Array) -> Found:
        """Return what is found on images float32[S, H, W, 3]."""
        image = self.first.graph.tensors[self.first.graph.inputs[0]]
        boxes, kept, scores, masks = self.codes(AIPU.encode(images[:, None], image))
        real = _real(boxes, BOX), _real(scores, _output_type(self.head)), _real(masks, _output_type(self.mask))
        decoded = [_found(b[0], k[0], s[0], m) for b, k, s, m in zip(real[0], kept, *real[1:], strict=True)]
        return Found(tuple(boxes for boxes, _ in decoded), tuple(masks for _, masks in decoded))

    def codes(self, images: Array) -> tuple[Array, Array, Array, Array]:
        """Return codes for quantized [S, 1, H, W, 3] of images.

        Boxes [S, 1, DETECTIONS, 4], rows of each class [S, 1, classes - 1], scores [S, 1, DETECTIONS], masks [S,
        DETECTIONS, POOLED_MASK, POOLED_MASK, classes].
        """
        *pyramid, scores, deltas = _run(self.first, [images])
        rois, _ = _run(self.propose, [scores, deltas])
        (pooled,) = _run(self.pool, [rois, *pyramid])
        chances, moves = _run(self.head, [pooled])
        boxes, kept, found, _ = _run(self.finish, [rois, chances, moves])
        (pooled,) = _run(self.pool_masks, [boxes, *pyramid])
        (masks,) = _run(self.mask, [pooled])
        return boxes, kept, found, masks


def _reading(part: Part, pooled: Tensor) -> Part:
    """Return a head whose input has the range of the pooled maps' shared type."""
    graph = part.graph.copy()
    t = graph.inputs[0]
    graph.tensors[t] = replace(graph.tensors[t], range=pooled.range)
    return replace(part, graph=graph)


def _quantised(part: Part, precision: Precision) -> Graph:
    wide = [i for name in precision.wide for i in part.layers.get(name, ())]
    rules = [f"{i}:activation_bits=16,lut_items_in_bits=10" for i in wide]
    # NMS follows in another part: in one graph a Softmax in front of it would use its table.
    settings = parse_settings(AIPU.settings, ["weights=per_channel", "softmax=lut"], rules)
    return lower(AIPU.quantise(part.graph, settings), "aipu")


def _anchor_type(bits: int) -> Affine:
    """Coordinates of 0 to 1 as an unsigned Constant."""
    return affine_of(np.float32((1 << bits) - 1), 0, bits, signed=False)


def _run(engine: Engine, inputs: list[Array]) -> list[Array]:
    outputs = engine.run(inputs)
    return [outputs[t] for t in engine.graph.outputs]


def _output_type(engine: Engine) -> Affine:
    return engine.graph.tensors[engine.graph.outputs[0]].affine


def _real(codes: Array, affine: Affine) -> Reals:
    return dequantise(codes, affine).astype(np.float64)


def _found(boxes: Reals, kept: Array, scores: Reals, masks: Reals) -> tuple[Detections, Masks]:
    """Return the rows in use of one image, without boxes that have no area, and their masks."""
    classes = np.repeat(np.arange(1, len(CLASSES)), kept.astype(np.int64))
    rows = np.flatnonzero(np.all(boxes[: len(classes), 2:] > boxes[: len(classes), :2], axis=1))
    return Detections(boxes[rows], classes[rows], scores[rows]), of_classes(masks[rows], classes[rows])
