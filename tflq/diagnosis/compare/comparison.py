"""Comparison of two sides tensor by tensor, and ranking of the layers by the noise that each adds itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tflq.diagnosis.compare.dumps import Dump
from tflq.diagnosis.compare.isolated import Isolated
from tflq.diagnosis.compare.matching import Match, Matching, match
from tflq.diagnosis.compare.result import Comparison, blame_of, explain, judged
from tflq.diagnosis.compare.sides import Running, Side
from tflq.diagnosis.compare.tally import Tally
from tflq.diagnosis.known_differences import Blame
from tflq.errors import InputError, OptionError, UnsupportedError
from tflq.graph import Array, Graph
from tflq.parallel.workers import in_order, open_workers

CHUNK_BYTES = 32 << 20
"""Bytes of tensors of both sides in memory at a time."""


def compare_sides(
    first: Side,
    second: Side,
    samples: int,
    *,
    isolated: bool = False,
    tolerance: float = 0.0,
    only: Sequence[str] = (),
    progress: Callable[[int], object] = lambda _: None,
    jobs: int = 1,
    scheduler: str | None = None,
) -> Comparison:
    """Compare, chunk by chunk: memory does not grow with the number of samples.

    Either side may be a dump: the model runs, and each of its layers also runs in isolation on the dump's tensors.

    Args:
        first: Side in question.
        second: the reference.
        samples: Number of samples to compare.
        isolated: feed each layer of the model with the other side's inputs.
        tolerance: Largest difference that counts as equal, in LSB.
        only: names of tensors of the first side; all that match if empty.
        progress: called with the number of samples just finished.
        jobs: processes of this machine that share the samples of two models; a dump is compared in this one.
        scheduler: address of a dask scheduler; its workers are used instead.

    Raises:
        MissingExtraError: as `open_workers`.
        InputError: no tensor has a counterpart, or a dump has too few samples.
        OptionError: isolated, and both sides are dumps.
        UnsupportedError: isolated, and a layer depends on values of the run.
    """
    matching = match(first.columns, second.columns)
    matches = _chosen(first, second, matching, samples, only)
    every = list(matching.matches)
    chunks = _Chunks(first, second, every, matches, isolated)
    sides, runner, blame = chunks.sides, chunks.runner, chunks.blame
    alone, together = sides.tallies(matches), sides.tallies(matches)
    if sides.dump is not None:
        jobs, scheduler = 1, None
    step = _chunk(every)
    parts = [(start, min(start + step, samples)) for start in range(0, samples, step)]
    with open_workers(chunks, jobs, scheduler) as run:
        for (start, stop), (tally, by_itself) in zip(parts, in_order(run, parts), strict=True):
            for m in matches:
                together[m.first.name].join(tally[m.first.name])
                alone[m.first.name].join(by_itself[m.first.name])
            progress(stop - start)
    own = {name: tally.figures() for name, tally in alone.items()} if runner is not None else {}
    figures = own if isolated else {name: tally.figures() for name, tally in together.items()}
    tensors = judged(sides.graph, sides.other, matches, every, figures, own)
    if blame is not None:
        tensors = tuple(replace(t, known=blame.known(t.match.first.index)) for t in tensors)
    unseen = _unseen(sides, matching)
    return Comparison(first.name, second.name, samples, isolated, tolerance, tensors, matching, unseen)


def _chosen(first: Side, second: Side, matching: Matching, samples: int, only: Sequence[str]) -> list[Match]:
    """Return the tensors to compare. Raises as `compare_sides`."""
    chosen = [m for m in matching.matches if not only or m.first.name in only]
    if not chosen:
        raise InputError(f"{first.name} and {second.name} have no tensor in common that could be compared")
    for side in (first, second):
        if side.count is not None and side.count < samples:
            raise InputError(f"{side.name} has {side.count} samples, {samples} are to be compared")
    return chosen


@dataclass(frozen=True)
class _Chunks:
    """Compares chunks of samples, in this process or a worker's.

    Attributes:
        first: Side in question.
        second: the reference.
        every: all tensors that both have.
        matches: Tensors to compare.
        isolated: True if layers run in isolation only.
    """

    first: Side
    second: Side
    every: list[Match]
    matches: list[Match]
    isolated: bool

    def __reduce__(self) -> tuple[type[_Chunks], tuple[object, ...]]:
        """Pickle the constructor's arguments."""
        return _Chunks, (self.first, self.second, self.every, self.matches, self.isolated)

    @cached_property
    def sides(self) -> _Sides:
        """Which side runs."""
        return _Sides(self.first, self.second, self.every)

    @cached_property
    def runner(self) -> Isolated | None:
        """Runner of single layers."""
        return self.sides.runner(self.isolated)

    @cached_property
    def blame(self) -> Blame | None:
        """Tally of differences that known differences explain."""
        return None if self.isolated else blame_of(self.sides.model, self.sides.dump)

    @property
    def wanted(self) -> list[Match]:
        """The tensors that are computed."""
        return self.every if self.runner or self.blame else self.matches

    def __call__(self, part: tuple[int, int]) -> tuple[dict[str, Tally], dict[str, Tally]]:
        """Return tallies of samples start..stop - 1: of both sides' tensors, and of layers in isolation."""
        start, stop = part
        sides, matches = self.sides, self.matches
        alone, together = sides.tallies(matches), sides.tallies(matches)
        theirs = self.second.take(start, stop, [m.second for m in self.wanted])
        is_alone = self.isolated and not sides.is_reversed
        mine = {} if is_alone else self.first.take(start, stop, [m.first for m in self.wanted])
        if not self.isolated:
            sides.add(together, matches, mine, theirs, start)
            if self.blame is not None and sides.model is not None:
                explain(self.blame, sides.whole, sides.model.inputs(start, stop), *sides.by_role(mine, theirs))
        if self.runner is not None and sides.model is not None:
            results = self.runner.run(sides.model.inputs(start, stop), sides.by_role(mine, theirs)[1])
            sides.add_alone(alone, matches, results, mine, theirs, start)
        return together, alone


class _Sides:
    """Roles of the two sides: the side that runs, and the elements of a tensor that both have.

    Attributes:
        is_reversed: whether the model is the second side, and the first a dump.
        model: the side with layers that can run; None for two dumps.
        graph: Graph that the model runs.
        other: the second side's graph if the first side runs, too.
    """

    def __init__(self, first: Side, second: Side, matches: Sequence[Match]) -> None:
        self._first, self._second = first, second
        self.is_reversed = isinstance(second, Running) and not isinstance(first, Running)
        model = second if self.is_reversed else first
        self.model = model if isinstance(model, Running) else None
        self.graph: Graph | None = self.model.execution.graph if self.model is not None else None
        both = isinstance(first, Running) and isinstance(second, Running)
        self.other: Graph | None = second.execution.graph if both and isinstance(second, Running) else None
        self.dump = next((s for s in (first, second) if isinstance(s, Dump)), None)
        self._matches = matches

    def runner(self, demanded: bool) -> Isolated | None:
        """Return the runner of single layers, used for ranking; None if impossible and not demanded."""
        if self.model is None:
            if demanded:
                raise OptionError("isolated needs a model; both sides are dumps and have no layers to run")
            return None
        try:
            return Isolated(self.model, {m.first.index: m for m in self.whole})
        except UnsupportedError:
            if demanded:
                raise
            return None

    @property
    def whole(self) -> list[Match]:
        """The tensors that both have whole, the model's column first."""
        turned = [Match(m.second, m.first) if self.is_reversed else m for m in self._matches]
        return [m for m in turned if m.second.name not in self._short]

    def by_role(
        self, mine: Mapping[str, Array], theirs: Mapping[str, Array]
    ) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """Return the model's values, and the other side's."""
        return (theirs, mine) if self.is_reversed else (mine, theirs)

    def tallies(self, matches: Sequence[Match]) -> dict[str, Tally]:
        """Return a tally for each tensor."""
        tallies = {}
        for m in matches:
            whole = (m.second if self.is_reversed else m.first).tensor
            cut = whole.shape if whole is not None and m.first.name in self._short else None
            tallies[m.first.name] = Tally(m.first.tensor, m.second.tensor, cut)
        return tallies

    def add(
        self,
        tallies: Mapping[str, Tally],
        matches: Sequence[Match],
        ours: Mapping[str, Array],
        theirs: Mapping[str, Array],
        start: int,
    ) -> None:
        """Add a chunk; of tensors that a dump has in part, that part."""
        for m in matches:
            if m.first.name in ours:
                a, b = self._as_read(m, ours[m.first.name], theirs[m.second.name])
                if m.first.name in self._short or m.second.name in self._short:
                    n = min(a[0].size, b[0].size)
                    a, b = a.reshape(len(a), -1)[:, :n], b.reshape(len(b), -1)[:, :n]
                tallies[m.first.name].add(a, b, start)

    def _as_read(self, match: Match, first: Array, second: Array) -> tuple[Array, Array]:
        """Return both sides of a tensor as their readers keep them; unchanged if one side is a dump."""
        if not (isinstance(self._first, Running) and isinstance(self._second, Running)):
            return first, second
        return self._first.as_read(first, match.first), self._second.as_read(second, match.second)

    def add_alone(
        self,
        tallies: Mapping[str, Tally],
        matches: Sequence[Match],
        results: Mapping[int, Array],
        mine: Mapping[str, Array],
        theirs: Mapping[str, Array],
        start: int,
    ) -> None:
        """Add results of layers in isolation instead of the model's own values."""
        if self.is_reversed:
            kept = [m for m in matches if m.second.index in results]
            self.add(tallies, kept, mine, {m.second.name: results[m.second.index] for m in kept}, start)
        else:
            ours = {m.first.name: results[m.first.index] for m in matches if m.first.index in results}
            self.add(tallies, matches, ours, theirs, start)

    @property
    def _short(self) -> frozenset[str]:
        return frozenset() if self.dump is None else self.dump.short


def _unseen(sides: _Sides, matching: Matching) -> tuple[str, ...]:
    """Return the inputs of the model that a dump lacks."""
    if sides.dump is None or sides.model is None:
        return ()
    seen = {m.first.index for m in matching.matches}  # a dump's columns have the numbers of the model's tensors
    inputs = set(sides.model.execution.graph.inputs) - seen
    return tuple(c.name for c in sides.model.columns if c.index in inputs)


def _chunk(matches: Sequence[Match]) -> int:
    columns = [c for m in matches for c in (m.first, m.second)]
    size = sum(c.tensor.size * 8 for c in columns if c.tensor is not None)
    return max(1, CHUNK_BYTES // max(size, 1))
