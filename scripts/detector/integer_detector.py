"""The detector in integers, from the quantized values of the image to those of the boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import tflq
from detector.anchors import anchors
from detector.average_precision import Detections
from detector.float_detector import DETECTIONS, REGIONS, Found, Masks, Trace, of_classes
from detector.graphs import Part, Parts
from detector.integer_layers import BOX, detection_graph, pooling_graph, proposal_graph
from detector.network import POOLED, POOLED_MASK
from detector.quantized import Array, decode, encode, shared_map, type_of
from detector.scenes import CLASSES

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
    pairs = (parts.first, trace.images), (parts.head, trace.pooled), (parts.mask, trace.pooled_masks)
    ranged = (tflq.calibrate(part.model, samples=x[:samples], strategy=strategy) for part, x in pairs)
    return Parts(*(replace(part, model=model) for (part, _), model in zip(pairs, ranged, strict=True)))


class IntegerDetector:
    """Engines of every step; quantized values go from one to the next."""

    def __init__(self, parts: Parts, precision: Precision) -> None:
        """Quantize the parts, which have ranges."""
        first = _quantized(parts.first, precision)
        *pyramid, scores, deltas = (first.tensors[t] for t in first.outputs)
        pooled = shared_map(pyramid)
        head, mask = (_quantized(_reading(part, pooled), precision) for part in (parts.head, parts.mask))
        chances, moves = (head.tensors[t] for t in head.outputs)
        box = type_of((1 << precision.anchor_bits) - 1, precision.anchor_bits)
        self.first, self.head, self.mask = tflq.Engine(first), tflq.Engine(head), tflq.Engine(mask)
        self.propose = tflq.Engine(proposal_graph(scores, deltas, encode(anchors()[None], box), box), "aipu")
        self.pool = tflq.Engine(pooling_graph(pyramid, pooled, REGIONS, POOLED), "aipu")
        self.pool_masks = tflq.Engine(pooling_graph(pyramid, pooled, DETECTIONS, POOLED_MASK), "aipu")
        self.finish = tflq.Engine(detection_graph(chances, moves), "aipu")

    def detect(self, images: Array) -> Found:
        """Return what is found on images float32[S, H, W, 3]."""
        image = self.first.graph.tensors[self.first.graph.inputs[0]]
        boxes, kept, scores, masks = self.quantized(encode(images[:, None], image.affine))
        real = decode(boxes, BOX), decode(scores, _output_type(self.head)), decode(masks, _output_type(self.mask))
        decoded = [_found(b[0], k[0], s[0], m) for b, k, s, m in zip(real[0], kept, *real[1:], strict=True)]
        return Found(tuple(boxes for boxes, _ in decoded), tuple(masks for _, masks in decoded))

    def quantized(self, images: Array) -> tuple[Array, Array, Array, Array]:
        """Return quantized values for those of images [S, 1, H, W, 3].

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


def _reading(part: Part, pooled: tflq.Tensor) -> Part:
    """Return a head whose input has the range of the pooled maps' shared type."""
    graph = part.model.main.copy()
    t = graph.inputs[0]
    graph.tensors[t] = replace(graph.tensors[t], range=pooled.range)
    return replace(part, model=tflq.Model([graph]))


def _quantized(part: Part, precision: Precision) -> tflq.Graph:
    wide = [i for name in precision.wide for i in part.layers.get(name, ())]
    layers = tuple(f"{i}:activation_bits=16,lut_items_in_bits=10" for i in wide)
    # NMS follows in another part: in one graph a Softmax in front of it would use its table.
    target = tflq.TargetOptions("aipu", ("weights=per_channel", "softmax=lut"), layers)
    return tflq.convert(part.model, target, samples=tflq.SampleOptions(count=1)).graph


def _run(engine: tflq.Engine, inputs: list[Array]) -> list[Array]:
    outputs = engine.run(inputs)
    return [outputs[t] for t in engine.graph.outputs]


def _output_type(engine: tflq.Engine) -> tflq.Affine:
    return engine.graph.tensors[engine.graph.outputs[0]].affine


def _found(boxes: Reals, kept: Array, scores: Reals, masks: Reals) -> tuple[Detections, Masks]:
    """Return the rows in use of one image, without boxes that have no area, and their masks."""
    classes = np.repeat(np.arange(1, len(CLASSES)), kept.astype(np.int64))
    rows = np.flatnonzero(np.all(boxes[: len(classes), 2:] > boxes[: len(classes), :2], axis=1))
    return Detections(boxes[rows], classes[rows], scores[rows]), of_classes(masks[rows], classes[rows])
