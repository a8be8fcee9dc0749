"""The tape: every element that a kernel computed for one sample, and the elements that it follows from.

Elements are numbered. Each operation numbers its results with the next free numbers, and each array has the numbers of
its elements in addition to its values: operations that move elements (a transposition, a slice, a concatenation) move
numbers in the same way, so that the tape contains only operations that compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.recording.primitive import Ids, TapsOf


class Kind(Enum):
    """Kind of a record.

    INPUT: an input of the kernel. PARAM: a field of its params, decided when it was lowered. LITERAL: a number in the
    code. COMPUTED: an operation. OPAQUE: a call with a known result but unknown derivation of its elements.
    """

    INPUT = "input"
    PARAM = "param"
    LITERAL = "literal"
    COMPUTED = "computed"
    OPAQUE = "opaque"


@dataclass(frozen=True, eq=False)
class Record:
    """One operation and its results.

    Attributes:
        kind: Kind of the operation.
        label: Label of the step; the name of an input or a field.
        formula: Formula with the operands in braces, by number or by name.
        start: number of the first element.
        values: T[shape].
        operands: name -> numbers of elements, broadcasting to the shape.
        taps: Taps of reductions.
        position: Position of an input.
        operation: Executed operation: numpy's function, a primitive's `Call`, or a word ("cast", "select", "look up",
            "view").
    """

    kind: Kind
    label: str
    formula: str
    start: int
    values: Array
    operands: dict[str, Ids]
    taps: TapsOf | None = None
    position: int = -1
    operation: object = None


class Tape:
    """Collects records."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._starts: list[int] = []
        self._size = 0

    def add(
        self,
        kind: Kind,
        values: Array,
        label: str = "",
        formula: str = "",
        operands: dict[str, Ids] | None = None,
        taps: TapsOf | None = None,
        position: int = -1,
        operation: object = None,
    ) -> Ids:
        """Keep an operation and return the numbers of its results, in a separate array of their shape."""
        kept = np.array(values)
        read = {name: np.array(numbers) for name, numbers in (operands or {}).items()}  # arrays may be overwritten
        self.records.append(Record(kind, label, formula, self._size, kept, read, taps, position, operation))
        self._starts.append(self._size)
        ids = np.arange(self._size, self._size + kept.size, dtype=np.int64).reshape(kept.shape)
        self._size += kept.size
        return ids

    def is_given(self, ids: Ids) -> bool:
        """Whether elements are numbers of the params or of the code, and none is read or computed."""
        records = np.unique(self.locate(ids.reshape(-1))[0]).tolist()
        return all(self.records[r].kind in (Kind.PARAM, Kind.LITERAL) for r in records)

    def locate(self, ids: Ids) -> tuple[NDArray[np.intp], Ids]:
        """Return for each number its record and its place in that record's flat values."""
        # Records without elements share their start with the next one; the last of them has the element.
        found = np.searchsorted(np.array(self._starts), ids, side="right") - 1
        return found, ids - np.array(self._starts, np.int64)[found]
