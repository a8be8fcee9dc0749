"""Steps of one element: its operations on the tape, in the order in which they ran."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tflq.graph import Array
from tflq.interpreter.recording.primitive import Ids, Taps
from tflq.interpreter.recording.tape import Kind, Record, Tape
from tflq.quoting import Names

Value = int | float | str | tuple["Value", ...]
Index = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        label: Name of the step; the same label in two computations is the same step.
        formula: Formula from earlier values, with their numbers; empty for an input.
        value: a number, a word, or nested tuples of numbers.
    """

    label: str
    formula: str
    value: Value


@dataclass
class _Use:
    """The elements of one record that are needed.

    Attributes:
        places: Positions in its flat values, in order.
        operands: name -> the element of each place, int64[places].
        taps: Taps of each place, for reductions.
        is_shown: True if it has a separate step; inputs with shown taps have none.
    """

    places: list[int]
    operands: dict[str, Ids] = field(default_factory=dict)
    taps: list[Taps] = field(default_factory=list)
    is_shown: bool = False


_QUIET = ("wrapped", "as int32", "nan_to_num")
"""Labels of steps that are shown only if they change a value."""
_BOUNDS = ("minimum", "maximum")
"""Fields that the formula of their clamp includes; they need no step."""


class _Steps:
    """Collector of steps with unique labels."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._labels = Names(between=" ")

    def add(self, label: str, formula: str, value: Value) -> str:
        """Add a step and return its label, numbered if the label exists already."""
        own = self._labels.fresh(label)
        self.steps.append(Step(own, formula, value))
        return own


class Slice:
    """Records that one element depends on.

    Attributes:
        uses: record -> its needed elements, in order of execution.
    """

    def __init__(self, tape: Tape, element: int) -> None:
        self._tape = tape
        self._element = element
        self.uses: dict[int, _Use] = {}
        wanted: dict[int, set[int]] = defaultdict(set)
        shown: set[int] = set()
        waiting: list[int] = []

        def want(ids: Ids, is_shown: bool) -> None:
            records, places = tape.locate(ids.reshape(-1))
            for record in np.unique(records).tolist():
                if record not in wanted:
                    heapq.heappush(waiting, -record)
                if is_shown or tape.records[record].kind is not Kind.INPUT:
                    shown.add(record)
                wanted[record].update(places[records == record].tolist())

        want(np.array([element]), True)
        while waiting:
            number = -heapq.heappop(waiting)
            record = tape.records[number]
            use = self.uses[number] = _Use(sorted(wanted[number]), is_shown=number in shown)
            index = np.unravel_index(use.places, record.values.shape) if record.values.ndim else ()
            for name, ids in record.operands.items():
                use.operands[name] = np.broadcast_to(ids, record.values.shape)[index].reshape(-1)
                want(use.operands[name], True)
            if record.taps is not None:
                places = zip(*(axis.tolist() for axis in index), strict=True) if index else [()]
                use.taps = [record.taps(place) for place in places]
                for taps in use.taps:
                    want(taps.sources[taps.sources >= 0], len(use.taps) > 1)
        self.uses = dict(sorted(self.uses.items()))
        self._last = self.uses[max(self.uses)]

    def inputs(self) -> list[tuple[int, Index]]:
        """Return (position, index) of every element of the kernel's inputs that is needed."""
        needed = []
        for number, use in self.uses.items():
            record = self._tape.records[number]
            if record.kind is Kind.INPUT:
                shape = record.values.shape
                needed += [(record.position, tuple(int(i) for i in np.unravel_index(p, shape))) for p in use.places]
        return needed

    def steps(self) -> tuple[Step, ...]:
        """Return a step for each operation, preceded by one for each input and number of the params it reads."""
        made = _Steps()
        self._labels: dict[int, str] = {}

        def show(number: int, use: _Use) -> None:
            record = self._tape.records[number]
            if number in self._labels:
                return
            if record.kind is Kind.LITERAL or not (use.is_shown or use is self._last) or record.label in _BOUNDS:
                self._labels[number] = record.label
                return
            values = record.values.reshape(-1)[use.places].tolist()
            for ids in (*use.operands.values(), *(taps.sources[taps.sources >= 0] for taps in use.taps)):
                for source in np.unique(self._tape.locate(ids)[0]).tolist():
                    show(source, self.uses[source])
            if record.label in _QUIET and values == self.values(next(iter(use.operands.values()))).tolist():
                self._labels[number] = self.source(next(iter(use.operands.values())))
                return
            if len(use.taps) == 1:
                for label, formula, value in self._tap_steps(use.taps[0]):
                    made.add(label, formula, value)
            formula = self._formula(record, use)
            own: Value = values[0] if len(values) == 1 else tuple(values)
            self._labels[number] = made.add(self._label(record, use), formula, own)

        for number, use in self.uses.items():
            if self._tape.records[number].kind not in (Kind.INPUT, Kind.PARAM) or use is self._last:
                show(number, use)
        if not made.steps:
            value = self.values(np.array([self._element]))[0].item()
            return (
                Step(
                    "stored value", "written by the operator: a filling, or a number that it decided in Python", value
                ),
            )
        last = made.steps[-1]
        return (*made.steps[:-1], Step("stored value", last.formula, last.value))

    def _label(self, record: Record, use: _Use) -> str:
        word = _WITH.get(record.label)
        if record.kind is not Kind.COMPUTED or word is None:
            return record.label
        for ids in use.operands.values():
            sources = {int(n) for n in self._tape.locate(ids)[0]}
            source = self._tape.records[sources.pop()]
            if not sources and source.kind is Kind.PARAM:
                return "accumulator" if (word, source.label) == ("plus", "bias") else f"{word} {source.label}"
        return record.label

    def _formula(self, record: Record, use: _Use) -> str:
        if record.kind is Kind.INPUT:
            places = [list(np.unravel_index(p, record.values.shape)) for p in use.places[:1]]
            return record.formula + (f" {[int(i) for i in places[0][1:]]}" if len(use.places) == 1 else "")
        if use.taps:
            words = _Operand(self, np.concatenate([t.sources[t.sources >= 0] for t in use.taps]))
            named = {name: _Operand(self, ids) for name, ids in use.operands.items()}
            return record.formula.format(x=words, **named)
        named = {f"_{k}" if k.isdigit() else k: _Operand(self, ids) for k, ids in use.operands.items()}
        # str.format needs positional fields in order; named fields may occur in any order
        return re.sub(r"\{(\d)", r"{_\1", record.formula).format(**named)

    def _tap_steps(self, taps: Taps) -> list[tuple[str, str, Value]]:
        """Return the steps that show the operands of a sum or maximum: inputs, weights, products."""
        values = self.values(taps.sources, taps.outside)
        records = np.unique(self._tape.locate(taps.sources[taps.sources >= 0])[0]).tolist()
        if taps.factors is None and all(self.uses[r].is_shown for r in records):
            return []
        steps = [("inputs", taps.note, nested(values))]
        if taps.factors is None:
            return steps
        weights = np.asarray(taps.factors)
        if np.array_equal(weights, np.rint(weights)) and np.array_equal(values, np.rint(values)):
            values, weights = values.astype(np.int64), weights.astype(np.int64)
            steps[0] = ("inputs", taps.note, nested(values))
        products = (values.astype(weights.dtype) * weights).astype(weights.dtype)
        by_channel = products.reshape(-1, products.shape[-1]).sum(axis=0) if products.ndim > 1 else products
        words = "sum of w * x over the taps, by input channel" if products.ndim > 1 else "w * x"
        return [*steps, ("weights", "", nested(weights)), ("products", words, nested(by_channel))]

    def values(self, ids: Ids, outside: float | None = None) -> Array:
        """Return the values of elements; `outside` for absent ones."""
        records, places = self._tape.locate(ids.reshape(-1))
        kept = [
            outside if i < 0 else self._tape.records[r].values.reshape(-1)[p].item()
            for i, r, p in zip(ids.reshape(-1).tolist(), records.tolist(), places.tolist(), strict=True)
        ]
        return np.array(kept).reshape(ids.shape)

    def words(self, ids: Ids) -> str:
        """Write operands of a formula: one number, or the label of the step that has them."""
        if (ids == ids.reshape(-1)[0]).all():
            value = self.values(ids.reshape(-1)[:1])[0].item()
            return f"({value!r})" if isinstance(value, (int, float)) and value < 0 else repr(value)
        return self.source(ids)

    def source(self, ids: Ids) -> str:
        """Name the steps that elements belong to."""
        records = dict.fromkeys(self._tape.locate(ids.reshape(-1))[0].tolist())
        names = [self._labels.get(r) or self._tape.records[r].label or "numbers" for r in records]
        return " / ".join(dict.fromkeys(names))


@dataclass(frozen=True)
class _Operand:
    """An operand in a formula; `{0:name}` writes its source."""

    slice: Slice
    ids: Ids

    def __format__(self, spec: str) -> str:
        return self.slice.source(self.ids) if spec == "name" else self.slice.words(self.ids)


_WITH = {"sum": "plus", "difference": "minus", "product": "times", "quotient": "divided by"}


def nested(array: Array) -> Value:
    """Return an array as nested tuples of Python numbers."""
    return _tuples(np.asarray(array).tolist())


def _tuples(value: object) -> Value:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    assert isinstance(value, (int, float, str))
    return value
