"""What a comparison finds: figures and causes of each tensor, and the layers ranked."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.analysis.compare.causes import Cause
from tflq.analysis.compare.matching import Match, Matching
from tflq.analysis.compare.tally import TensorFigures
from tflq.analysis.known_differences import KnownElements, summed
from tflq.units import short


@dataclass(frozen=True)
class ComparedTensor:
    """One tensor of both sides.

    Attributes:
        match: the two columns.
        figures: how they differ.
        node: name of the first side's node with the weights; empty for inputs and dumps.
        operator: of that node.
        channel: the one to look at: where integers differ, else where the result differs most; None if nothing does.
        cause: None where nothing differs, or no side is a graph.
        group: 0 where an input or integers differ, 1 where equal inputs give other results, 2 else.
        added: noise-to-signal ratio of the layer alone; where that cannot be run, what it has above its inputs; 0 where
            the range of an input explains it.
        own: the same, whatever explains it.
        known: how many of the differing elements are known to differ from TFLite's, by reason.
    """

    match: Match
    figures: TensorFigures
    node: str = ""
    operator: str = ""
    channel: int | None = None
    cause: Cause | None = None
    group: int = 2
    added: float = 0.0
    own: float = 0.0
    known: tuple[KnownElements, ...] = ()

    @property
    def name(self) -> str:
        """Name of the tensor on the first side."""
        return self.match.first.name

    @property
    def place(self) -> str:
        """What to look at: the node, or the input of the model."""
        return self.node or short(self.name)

    @property
    def is_explained(self) -> bool:
        """Whether each element that differs is known to."""
        return self.figures.differing <= sum(k.elements for k in self.known)


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        first: name of the first side.
        second: name of the reference.
        samples: number of samples.
        isolated: whether each layer was fed with the reference's inputs.
        tolerance: differences up to it do not count, in LSB.
        tensors: in order of execution.
        matching: what could be compared, and what could not.
        unseen: inputs of the model that the dump does not hold; whether they are equal is not known.
    """

    first: str
    second: str
    samples: int
    isolated: bool
    tolerance: float
    tensors: tuple[ComparedTensor, ...]
    matching: Matching
    unseen: tuple[str, ...] = ()

    @property
    def diverging(self) -> tuple[ComparedTensor, ...]:
        """Tensors that differ by more than the tolerance, in order of execution."""
        return tuple(t for t in self.tensors if t.figures.differing and t.figures.largest > self.tolerance)

    @property
    def is_equal(self) -> bool:
        """Whether no tensor differs by more than the tolerance."""
        return not self.diverging

    @property
    def known(self) -> tuple[KnownElements, ...]:
        """The reasons of all tensors, each with the elements that it explains."""
        return summed(k for t in self.tensors for k in t.known)

    @property
    def is_explained(self) -> bool:
        """Whether every difference beyond the tolerance is one that tflq is known to have from TFLite."""
        return all(t.is_explained for t in self.diverging)

    @property
    def ranking(self) -> tuple[ComparedTensor, ...]:
        """Layers that differ or whose integers do, the one to look at first in front.

        Those that differ by themselves stand in order of execution, others by the noise that they add.
        """
        exact = [t for t in self.tensors if t.cause is not None and t.group < 2 and self._counts(t)]
        noisy = [t for t in self.tensors if t.cause is not None and t.group == 2 and self._counts(t)]
        return (*sorted(exact, key=lambda t: t.group), *sorted(noisy, key=lambda t: -t.added))

    def _counts(self, t: ComparedTensor) -> bool:
        """Whether a tensor differs by more than the tolerance; integers that differ always count."""
        return t.group == 0 or t.figures.largest > self.tolerance
