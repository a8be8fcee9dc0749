"""True content of samples with other labels than classes, and its decoding from outputs: boxes, masks, texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.benchmarks.metrics.metric import Found, Metric
from tflq.benchmarks.metrics.scores import Boxes

Part = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels of a file."""
Place = tuple[int, int]
"""Range of an output in the concatenated outputs: first element, element after the last."""


class Decoder(Protocol):
    """Decoding of outputs into predictions; it can be pickled for worker processes."""

    def __call__(self, values: Doubles) -> Found:
        """Return the prediction for each sample from the concatenated outputs, real[S, elements]."""

    def part(self, start: int, stop: int) -> Decoder:
        """Return the decoder of some of the samples."""


@dataclass(frozen=True)
class Truth:
    """True content of samples.

    Attributes:
        content: Content of each sample.
        metric: Score for such labels.
        decode: Decoder of a model's outputs.
        ids: Ids of images, which determine the order of evaluation; empty if the order has no effect.
    """

    content: Found
    metric: Metric
    decode: Decoder
    ids: tuple[int, ...] = ()

    def figure(self, metric: Metric, values: Doubles, reference: Doubles) -> float:
        """Return a metric of outputs, real[S, elements]; the reference is another model's outputs."""
        if metric.is_against_reference:
            return metric.compute(values, np.zeros(0, np.int64), reference)
        return metric.compare(self._in_order(self.decode(values)), self._in_order(self.content))

    def _in_order(self, content: Found) -> Found:
        """Sort by image id: COCO ranks equal scores by the id."""
        return [content[n] for n in np.argsort(self.ids, kind="stable")] if self.ids else content

    def part(self, start: int, stop: int) -> Truth:
        """Return the truth of some of the samples."""
        decode = self.decode.part(start, stop)
        return replace(self, content=self.content[start:stop], decode=decode, ids=self.ids[start:stop])


Labels = NDArray[np.int64] | Truth
"""Classes, int64[S], or other labels."""


def figure_of(metric: Metric, values: Doubles, labels: Labels, reference: Doubles) -> float:
    """Return a metric of outputs, real[S, elements], with labels of either kind, as `Metric.compute`."""
    if isinstance(labels, Truth):
        return labels.figure(metric, values, reference)
    return metric.compute(values, labels, reference)


@dataclass(frozen=True)
class BoxDecoder:
    """Detections in pixels of the file: boxes are top, left, bottom, right in parts of the model's image.

    Attributes:
        places: Ranges of boxes, classes, scores and their number in the concatenated outputs.
        parts: Part of each file that the model's input contains.
    """

    places: tuple[Place, ...]
    parts: tuple[Part, ...]

    def __call__(self, values: Doubles) -> Found:
        """Return boxes."""
        parted = [values[:, start:stop] for start, stop in self.places]
        return [_boxes(*one) for one in zip(*parted, self.parts, strict=True)]

    def part(self, start: int, stop: int) -> BoxDecoder:
        """Return the decoder of some of the files."""
        return replace(self, parts=self.parts[start:stop])


def _boxes(boxes: Doubles, classes: Doubles, scores: Doubles, number: Doubles, part: Part) -> Boxes:
    count = int(np.clip(np.rint(number[0]), 0, len(scores)))
    left, top, right, bottom = part
    size, start = np.array([right - left, bottom - top] * 2), np.array([left, top] * 2)
    corners = boxes.reshape(-1, 4)[:count, [1, 0, 3, 2]] * size + start
    return Boxes(corners, np.rint(classes[:count]).astype(np.int64), scores[:count])


@dataclass(frozen=True)
class MaskDecoder:
    """The class of each pixel, or the highest of the scores of each."""

    height: int
    width: int
    channels: int

    def __call__(self, values: Doubles) -> Found:
        """Return classes, int64[S, height, width]."""
        scores = values.reshape(-1, self.height, self.width, self.channels)
        classes = np.rint(scores[..., 0]) if self.channels == 1 else scores.argmax(axis=3)
        return np.asarray(classes, np.int64)

    def part(self, start: int, stop: int) -> MaskDecoder:  # noqa: ARG002 (samples are alike)
        """Return itself."""
        return self


@dataclass(frozen=True)
class TextDecoder:
    """CTC's greedy decoding of scores [T, tokens]; `tokens` has an empty text for the blank."""

    tokens: tuple[str, ...]
    blank: int

    def __call__(self, values: Doubles) -> Found:
        """Return texts."""
        best = values.reshape(len(values), -1, len(self.tokens)).argmax(axis=2)
        return ["".join(self.tokens[t] for t in greedy(row, self.blank)) for row in best]

    def part(self, start: int, stop: int) -> TextDecoder:  # noqa: ARG002 (samples are alike)
        """Return itself."""
        return self


def greedy(best: NDArray[np.int64], blank: int) -> NDArray[np.int64]:
    """Return CTC's greedy decoding of the best token of each step: without repeats, then without blanks.

    Source: A. Graves and others, Connectionist Temporal Classification, 2006, 3.2 (best path decoding).
    """
    new = np.concatenate([[True], best[1:] != best[:-1]])
    return np.asarray(best[new & (best != blank)], np.int64)
