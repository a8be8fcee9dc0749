"""Elements of a tape that are in memory already, and loops over elements whose operations repeat."""

from __future__ import annotations

import numpy as np

from tflq.emit.c99.expression import Axis, Buffer, Expression, Fold, Operation, WindowFold, order_parts
from tflq.interpreter.recording.primitive import Ids
from tflq.interpreter.recording.tape import Tape


class Stored:
    """Which elements lie in which buffer."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._arrays: list[tuple[Ids, Ids, Buffer]] = []  # sorted numbers, their places, memory

    @property
    def count(self) -> int:
        """How many arrays were added."""
        return len(self._arrays)

    def forget(self, count: int) -> None:
        """Leave out all but the first of them."""
        del self._arrays[count:]

    def add(self, buffer: Buffer, ids: Ids, value: Expression | None = None) -> None:
        """Remember that a buffer holds these elements in order.

        Args:
            buffer: with the bounds of its elements.
            ids: their numbers.
            value: of all of them: where it is the copy of another number in a type that holds it, that is there, too.
        """
        flat = ids.reshape(-1)
        self._keep(buffer, flat)
        while isinstance(value, Operation) and value.operation == "cast" and not value.wraps:
            records, places = self._tape.locate(flat)
            record = self._tape.records[int(records[0])]
            value = value.operands[0]
            if (records != records[0]).any() or record.operation != "cast" or value.is_real:
                return
            flat = record.operands["0"].reshape(-1)[places]
            self._keep(buffer, flat)

    def find(self, ids: Ids) -> tuple[Buffer, Ids] | None:
        """Return the memory that holds these elements, and their places in it."""
        for known, places, buffer in self._arrays:
            at = np.minimum(np.searchsorted(known, ids), known.size - 1)
            if (known[at] == ids).all():
                return buffer, places[at]
        return None

    def _keep(self, buffer: Buffer, flat: Ids) -> None:
        order = np.argsort(flat, kind="stable")
        self._arrays.append((flat[order], order.astype(np.int64), buffer))


def computed(tape: Tape, ids: Ids) -> Ids:
    """Return the numbers of which these are copies in another type."""
    while True:
        records, places = tape.locate(ids)
        record = tape.records[int(records.reshape(-1)[0])]
        if (records != records.reshape(-1)[0]).any() or record.operation != "cast":
            return ids
        ids = record.operands["0"].reshape(-1)[places]


def is_worth_memory(value: Expression, inner: tuple[Axis, ...], axes: tuple[Axis, ...]) -> bool:
    """Whether what a sum over inner loops reads is itself computed from sums that change with them.

    Then it is put into memory: it is read once more, by turns of loops on which it does not depend or by other sums.
    A sum of nothing but sums is written as one.
    """
    sums = [
        part for part in order_parts(value) if isinstance(part, (Fold, WindowFold)) and part.axes.intersection(inner)
    ]
    is_one = value in sums and not set(axes) - value.axes
    return bool(sums) and not is_one


def shape_of(tape: Tape, ids: Ids) -> tuple[int, ...]:
    """Return the axes of loops over elements: those of more than one, cut in two where operations repeat along one."""
    shape = tuple(n for n in ids.shape if n > 1)
    records = tape.locate(ids.reshape(-1))[0].reshape(shape)
    found: list[int] = []
    for n, size in enumerate(shape):
        rows = np.moveaxis(records, n, 0).reshape(size, -1)
        found_at = (
            p for p in range(1, size) if size % p == 0 and (rows.reshape(-1, p, rows.shape[1]) == rows[:p]).all()
        )
        period = next(found_at, size)
        found += [size] if period in (1, size) else [size // period, period]
    return tuple(found)
