"""A recorded function gives numpy's own result, and each element follows from the inputs that change it, no others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tflq.diagnosis.explain.steps import Slice
from tflq.interpreter.recording.operations import Operations
from tflq.interpreter.recording.tape import Kind, Tape

X = np.arange(1, 13, dtype=np.float64).reshape(3, 4)


def into_empty(x: np.ndarray) -> np.ndarray:
    result = np.empty((4, 3))
    result.reshape(-1)[2:] = x.reshape(-1)[:10]
    result[0, :2] = 5
    return result


def in_place(x: np.ndarray) -> np.ndarray:
    total = x[:, :2] + x[:, 2:]
    total += x[:1, :2]
    np.multiply(total, total, out=total)
    return total


def masked(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[y > 6] = 100
    np.copyto(y, -1, where=y < 2)
    return y


def scattered(x: np.ndarray) -> np.ndarray:
    total = np.zeros(3)
    np.add.at(total, np.array([0, 2, 0, 2]), x[1])
    return total


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "into_empty": into_empty,
    "in_place": in_place,
    "scattered": scattered,
    "matmul": lambda x: x @ np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
    "sum": lambda x: x.sum(axis=0, keepdims=True) + 1,
    "mean of all": lambda x: np.asarray(x.mean()),
    "running sum": lambda x: np.cumsum(x, axis=1),
    "accumulate in place": lambda x: np.add.accumulate(x, axis=0, out=np.array(x)),
    "moves": lambda x: np.concatenate([x.T[::2], np.pad(x, ((0, 1), (0, 0)))[1:, :3]], axis=0),
    "stack, flip, repeat": lambda x: np.stack([np.flip(x, 1), np.repeat(x[:, :1], 4, axis=1)]),
    "split": lambda x: np.split(x, 2, axis=1)[1] - 3,
    "asarray of a list": lambda x: np.array([x[0], x[2]]) * 2,
    "outer": lambda x: np.multiply.outer(x[0], x[1]),
    "where": lambda x: np.where(np.arange(4) > 1, x, -x),
    "take": lambda x: np.take(x, np.array([3, 0]), axis=1),
    "frexp": lambda x: np.frexp(x)[0],
    "scalars of an array": lambda x: np.asarray([np.asarray(row[1]) for row in x]),
}


def recorded(function: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray, Tape]:
    tape = Tape()
    operations = Operations(tape)
    x = operations.source(Kind.INPUT, X.copy(), "x", position=0)
    with operations.recording():
        result = function(x)
    return np.asarray(result), result.ids, tape


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_follow_from_the_inputs_that_change_them(name: str) -> None:
    function = FUNCTIONS[name]
    values, ids, tape = recorded(function)
    expected = function(X.copy())
    assert np.array_equal(values, expected)
    reads = np.zeros((values.size, X.size), bool)
    for i in range(X.size):
        changed = X.copy()
        changed.reshape(-1)[i] += 0.25
        reads[:, i] = (function(changed) != expected).reshape(-1)
    for element, own in zip(ids.reshape(-1).tolist(), reads, strict=True):
        found = Slice(tape, element)
        assert {np.ravel_multi_index(index, X.shape) for _, index in found.inputs()} == set(np.flatnonzero(own))
        assert found.steps()[-1].value == expected.reshape(-1)[ids.reshape(-1).tolist().index(element)]


def test_a_computed_mask_is_a_choice() -> None:
    values, ids, tape = recorded(masked)
    assert np.array_equal(values, masked(X.copy()))
    first, last = (Slice(tape, int(element)).steps() for element in (ids[0, 0], ids[2, 3]))
    assert first[-1].formula == "(-1), the condition being True"
    assert [step.value for step in last if step.label == "is greater"] == [True]


def test_numpy_is_left_as_it_was() -> None:
    before = (np.asarray, np.empty)
    tape = Tape()
    operations = Operations(tape)
    with pytest.raises(ZeroDivisionError), operations.recording():
        raise ZeroDivisionError
    assert (np.asarray, np.empty) == before
