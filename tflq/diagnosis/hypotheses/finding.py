"""The result of a diagnosis: the description of the difference, then the causes with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.form import Form
from tflq.diagnosis.hypotheses.evidence import CERTAIN
from tflq.diagnosis.place import Place

_MOST_NAMED = 4
_ALIKE, _UNRELATED = 0.9, 0.2
"""Correlations on the differing elements from which on results are alike, and below which they are unrelated."""


@dataclass(frozen=True)
class Finding:
    """A cause and its evidence.

    Attributes:
        hypothesis: Name of the hypothesis.
        words: The cause.
        remaining: Elements that still differ if it is true.
        elements: Elements that it was compared on.
        share: Share of the differing elements that it explains, minus equal elements that it makes wrong.
        advice: Sentence with the check of the cause.
        anchor: Section of docs/guides/diagnosis.md.
        gain: Bits that the cause saves compared with a list of the differences (evidence.py).
        bits: Bits of its place and numbers.
        place: Words of the part of the tensor in which it acts; empty if everywhere.
        is_confirmed: Whether two samples support each of its fitted numbers.
        layers: Further wrong layers that it explains.
        alike: Variants of the hypothesis with the same results on these samples.
        node: Name of the accused node if several are between the dumped tensors; else empty.
    """

    hypothesis: str
    words: str
    remaining: int
    elements: int
    share: float
    advice: str
    anchor: str
    gain: float
    bits: float = 0.0
    place: str = ""
    is_confirmed: bool = True
    layers: int = 0
    alike: tuple[str, ...] = ()
    node: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether no element differs if it is true."""
        return self.remaining == 0

    @property
    def is_certain(self) -> bool:
        """Whether it leaves no element and chance is excluded (gain of 20 bits)."""
        return self.is_exact and self.gain >= CERTAIN and self.is_confirmed


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Diagnosis of a layer at fault: place and form of the difference, then its cause.

    Attributes:
        number: Number of its tensor in the graph that ran.
        tensor: Name of the tensor.
        node: Name of the node that writes it; empty for an input.
        operator: Operator of the node.
        first_sample: Number of the first sample that was examined.
        samples: Number of examined samples.
        differing: Elements that differ from the layer's result on the dump's own inputs.
        elements: Elements of the tensor in these samples.
        sample: Sample of the first difference.
        index: Index of the first difference.
        got: Value of the dump there.
        wanted: Value of the layer there.
        inputs_seen: Whether the dump contains every input of the layer.
        found: Causes, exact ones first.
        tried: Number of computed variants.
        without_effect: Hypotheses that change no element on these samples: neither named nor excluded.
        untried: Hypotheses beyond the limit of work, or refused by the kernel.
        failed: Hypotheses that raised an exception: defects of tflq.
        place: Place of the differing elements.
        form: Form of the differences.
        is_linear: Whether some weights and bias explain the dump (regression.py); None if unknown.
        version: Number of layers with weights that are at fault on their own inputs, and of all such dumped layers.
        segment: Names of the nodes between the dumped tensors, in order; each may contain the cause.
        later: Names of further tensors that are wrong by themselves.
        next_step: Tensor to dump next, and the conclusion from it; empty if the cause is in one node.
        others: Diagnoses of later layers that the cause does not explain.
        wrong: Differing elements, bool[samples, *shape]: for pictures.
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
    failed: tuple[str, ...]
    place: Place
    form: Form
    is_linear: bool | None
    version: tuple[int, int]
    segment: tuple[str, ...]
    later: tuple[str, ...]
    next_step: str
    others: tuple[Diagnosis, ...]
    wrong: NDArray[np.bool_] = field(repr=False)

    @property
    def exact(self) -> tuple[Finding, ...]:
        """Causes with which no element differs."""
        return tuple(f for f in self.found if f.is_exact)

    @property
    def certain(self) -> tuple[Finding, ...]:
        """Exact causes that chance cannot explain."""
        return tuple(f for f in self.exact if f.is_certain)

    @property
    def correlation(self) -> float:
        """Correlation of both results on the differing elements; NaN if one is constant."""
        return self.form.correlation

    @property
    def status(self) -> str:
        """One of "found", "several", "consistent", "rounding", "version", "partly" and "not told"."""
        if self.certain:
            return "found" if len(self.exact) == 1 else "several"
        if self.exact:
            return "consistent"
        if "rounding" in self.form.names:
            return "rounding"
        if self.is_version:
            return "version"
        return "partly" if self.found else "not told"

    @property
    def description(self) -> str:
        """Place and form of the difference, in one sentence that is true for every cause."""
        return f"{self.place.words}; {self.form.words}"

    @property
    def words(self) -> str:
        """The cause in one sentence, with its numbers."""
        words = self._cause_words()
        if not self.next_step:
            return words
        first, last = self.segment[0], self.segment[-1]
        head = "" if self.exact else f"somewhere in {first} .. {last}: "
        return f"{head}{words}; next: {self.next_step}"

    def _cause_words(self) -> str:
        status = self.status
        if status == "found":
            return self._certain_words(self.exact[0])
        if status in ("several", "consistent"):
            return self._several_words(status)
        if status == "rounding":
            return "a rounding of an unknown rule, at most 1: no bias and no weight is off"
        if status == "version":
            wrong, dumped = self.version
            return f"{wrong} of {dumped} layers with weights differ by themselves: perhaps weights of another version"
        if status == "partly":
            f = self.found[0]
            head = f"partly {_subject(f.words)}: with that, {f.remaining} of {f.elements} elements still differ"
            return f"{head} ({f.share:.0%} of the difference explained)"
        return f"no cause found by {self.tried} hypotheses{self._hint()}"

    @property
    def advice(self) -> str:
        """Next step."""
        if self.found and self.status != "version":
            return self.found[0].advice
        if self.status == "rounding":
            return "run the same file with the other runtimes (docs/guides/runtimes.md)"
        return "explain the first element that differs; dump more tensors or samples"

    @property
    def is_version(self) -> bool:
        """Whether it looks like another version of the weights.

        All of these apply: the difference is spread and has no form; every layer with weights, at least two, is at
        fault on its own inputs; some weights explain this layer; the results are alike on the differing elements.
        """
        wrong, dumped = self.version
        has_form = set(self.form.names) - {"one sign"}
        is_alike = np.isfinite(self.correlation) and self.correlation > _ALIKE
        return bool(
            wrong == dumped >= 2 and not self.place.parts and not has_form and self.is_linear is not False and is_alike
        )

    @property
    def wrong_channels(self) -> int:
        """Number of channels that differ."""
        return int(np.count_nonzero(self.wrong.reshape(-1, self.wrong.shape[-1]).any(axis=0)))

    def _certain_words(self, f: Finding) -> str:
        more = f"; the same in {f.layers} further layer{'s' * (f.layers > 1)}" if f.layers else ""
        alike = f"; these samples do not distinguish it from: {', '.join(f.alike[:3])}" if f.alike else ""
        where = f"{f.node}: " if f.node else ""
        return f"{where}{_subject(f.words)}: with that, 0 of {f.elements} elements differ{more}{alike}"

    def _several_words(self, status: str) -> str:
        exact = self.exact
        every = list(dict.fromkeys((f.node, w) for f in exact for w in (f.words, *f.alike[:1])))
        named = "; or ".join(f"{node}: {_subject(w)}" if node else _subject(w) for node, w in every[:_MOST_NAMED])
        more = f"; or {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
        each = "each of these" if len(every) > 1 else "that"
        text = f"{named}{more}: with {each}, 0 of {exact[0].elements} elements differ"
        if status == "several":
            return text
        why = (
            "one sample cannot confirm a fitted number"
            if not exact[0].is_confirmed
            else f"{self.differing} elements are few"
        )
        return f"consistent with: {text}; not certain, {why}"

    def _hint(self) -> str:
        if self.is_linear is False:
            return "; no weights and no bias explain it"
        if self.is_linear:
            return "; other weights or another bias would explain it"
        if np.isfinite(self.correlation) and abs(self.correlation) < _UNRELATED:
            return "; the values are unrelated to the expected result, perhaps a wrong address"
        return ""


def _subject(words: str) -> str:
    """Add the article before the cause, except before channels and numbers."""
    plain = (
        "channel",
        "all ",
        "weights",
        "values",
        "results",
        "scales",
        "axes",
        "row",
        "column",
        "position",
        "elements ",
        "samples ",
    )
    return (
        words
        if words.startswith((*plain, "inputs", "input ", "bytes ", "ReLU", "no ", "16-", "32-", "64-"))
        else f"the {words}"
    )
