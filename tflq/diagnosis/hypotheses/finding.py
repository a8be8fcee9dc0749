"""What a diagnosis finds: hypotheses with their figures, and the sentence that says the cause."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

VERSION = 0.6
"""A hypothesis that explains more of the difference is named before another version of the weights."""
_MOST_NAMED = 4


@dataclass(frozen=True)
class Finding:
    """A hypothesis and how well it holds.

    Attributes:
        hypothesis: its name.
        words: the cause.
        remaining: elements that differ if it is true.
        elements: elements that it was held against.
        share: of the differing elements that it explains, those that it spoils taken off.
        advice: what to do.
        anchor: section of docs/diagnosis.md.
        layers: further wrong layers that it explains as well.
        alike: variants of the hypothesis that give the same on these samples.
        is_local: whether it holds in some channels or samples alone.
    """

    hypothesis: str
    words: str
    remaining: int
    elements: int
    share: float
    advice: str
    anchor: str
    layers: int = 0
    alike: tuple[str, ...] = ()

    is_local: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether nothing differs if it is true."""
        return self.remaining == 0


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is known of the first layer that is wrong by itself.

    Attributes:
        number: of the tensor in the graph that ran.
        tensor: its name.
        node: that writes it; empty for an input.
        operator: of the node.
        first_sample: number of the first sample that was looked at.
        samples: how many were.
        differing: elements that differ from what the layer makes of the dump's own inputs.
        elements: of the tensor, in these samples.
        sample: of the first that differs.
        index: its place.
        got: the dump's value there.
        wanted: the layer's.
        inputs_seen: whether the dump holds all that the layer reads.
        found: hypotheses, those that hold exactly first.
        tried: variants that were computed.
        without_effect: hypotheses that change nothing on these samples: they can be neither named nor excluded.
        untried: hypotheses that were not reached in time.
        correlation: of the dump's and the layer's values; NaN where one is constant.
        has_weights: whether the layer has some.
        later: names of further tensors that are wrong by themselves.
        wrong: which elements differ, bool[samples, *shape]: for pictures.
    """

    number: int
    tensor: str
    node: str
    operator: str
    first_sample: int
    samples: int
    differing: int
    elements: int
    sample: int
    index: tuple[int, ...]
    got: float
    wanted: float
    inputs_seen: bool
    found: tuple[Finding, ...]
    tried: int
    without_effect: tuple[str, ...]
    untried: tuple[str, ...]
    correlation: float
    has_weights: bool
    later: tuple[str, ...]
    wrong: NDArray[np.bool_] = field(repr=False)

    @property
    def exact(self) -> tuple[Finding, ...]:
        """Hypotheses with which nothing differs."""
        return tuple(f for f in self.found if f.is_exact)

    @property
    def status(self) -> str:
        """One of "found", "several" that explain it equally, "partly", "not told"."""
        if len(self.exact) == 1:
            return "found"
        return "several" if self.exact else "partly" if self.found else "not told"

    @property
    def words(self) -> str:
        """The cause in one sentence, with its numbers."""
        exact = self.exact
        if len(exact) == 1:
            f = exact[0]
            more = f"; the same in {f.layers} further layer{'s' * (f.layers > 1)}" if f.layers else ""
            alike = f"; these samples do not tell it from: {', '.join(f.alike[:3])}" if f.alike else ""
            return f"{_subject(f.words)}: with that, 0 of {f.elements} elements differ{more}{alike}"
        if exact:
            every = list(dict.fromkeys(w for f in exact for w in (f.words, *f.alike[:1])))
            named = "; or ".join(_subject(w) for w in every[:_MOST_NAMED])
            more = f"; or {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
            return f"{named}{more}: with each of these, 0 of {exact[0].elements} elements differ"
        if self.found and (self.found[0].share > VERSION or not self._is_version):
            f = self.found[0]
            return (
                f"perhaps {_subject(f.words)}: with that, {f.remaining} of {f.elements} elements still differ "
                f"({f.share:.0%} of the difference explained)"
            )
        if self._is_version:
            return (
                f"perhaps weights of another version: {self.tried} hypotheses do not tell it, the correlation with the "
                f"sound result is {self.correlation:.3f}"
            )
        return f"not told by {self.tried} hypotheses{self._likeness()}"

    @property
    def advice(self) -> str:
        """What to do."""
        return (
            self.found[0].advice
            if self.found
            else "explain the first element that differs; dump more tensors or samples"
        )

    @property
    def _is_version(self) -> bool:
        """Whether it looks like other weights: a layer that has some, like the sound one in most of its channels."""
        many = self.wrong_channels > self.wrong.shape[-1] / 2
        return self.has_weights and many and bool(np.isfinite(self.correlation)) and self.correlation > 0.5

    @property
    def wrong_channels(self) -> int:
        """Number of channels that differ."""
        return int(np.count_nonzero(self.wrong.reshape(-1, self.wrong.shape[-1]).any(axis=0)))

    def _likeness(self) -> str:
        if not np.isfinite(self.correlation):
            return ""
        unrelated = ": unrelated, a wrong address?" if abs(self.correlation) < 0.2 else ""
        return f"; correlation {self.correlation:.2f} with the sound result{unrelated}"


def _subject(words: str) -> str:
    """Put the article in front of what is said of the tensor, but of channels and numbers."""
    plain = ("channel", "all ", "weights", "values", "results", "scales", "axes", "rows ", "columns ", "elements ")
    return words if words.startswith((*plain, "inputs", "ReLU", "nothing", "16-", "32-", "64-")) else f"the {words}"
