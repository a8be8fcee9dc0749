"""Form of a difference d = got - expected on the differing elements: a number, a bit, a clamp, a copy, a rounding.

Each form is a test on the two arrays only; a sentence describes each form that applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.diagnosis.place import Mask, name_axes
from tflq.graph import Array

_FEW_VALUES, _LEAST = 4, 3
_MOST_STEPS = 64
_ROUNDING_SHARE = 0.01


@dataclass(frozen=True)
class Form:
    """Description of the values that differ.

    Attributes:
        names: Names of the forms that apply: "constant", "few values", "one bit", "multiples", "one sign", "clamp",
            "one value", "copy", "rounding".
        sentences: One for each, then the range of the differences.
        correlation: Correlation coefficient of both results on the differing elements; NaN if one is constant there.
        values: Number of distinct differences; log2 of it is the number of bits that encode one.
    """

    names: tuple[str, ...]
    sentences: tuple[str, ...]
    correlation: float
    values: int

    @property
    def words(self) -> str:
        """All sentences in one line."""
        return "; ".join(self.sentences)


def describe_form(got: Array, sound: Array, wrong: Mask) -> Form:
    """Describe how two results differ.

    Args:
        got: The dump's values, T[S, *shape].
        sound: The layer's values, same shape and type.
        wrong: Elements that differ, bool[S, *shape]; at least one.
    """
    a, b = got[wrong], sound[wrong]
    correlation = _correlate(a, b)
    if got.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            reals = np.asarray(a.astype(np.float64) - b.astype(np.float64))
        forms = [*_find_sign(reals), *_find_copy(got, sound, wrong)]
        return _assemble(forms, reals, correlation, len(np.unique(reals)))
    d = np.asarray(a.astype(np.int64) - b.astype(np.int64))
    forms = [
        *_find_numbers(d),
        *_find_bits(a, b, d),
        *_find_sign(d),
        *_find_clamp(got, sound, wrong),
        *_find_copy(got, sound, wrong),
        *_find_rounding(d, wrong.size),
    ]
    return _assemble(forms, d, correlation, int(d.max() - d.min()) + 1)


def _assemble(forms: Sequence[tuple[str, str]], d: Integers | Doubles, correlation: float, values: int) -> Form:
    names = tuple(name for name, _ in forms)
    sentences = [words for _, words in forms]
    if not {"constant", "few values"} & set(names):
        sentences.append(_write_range(d))
    return Form(names, tuple(sentences), correlation, max(2, values))


def _find_numbers(d: Integers) -> Iterator[tuple[str, str]]:
    values, counts = np.unique(d, return_counts=True)
    if len(values) == 1:
        yield "constant", f"every difference is {int(values[0]):+d}"
    elif len(values) <= _FEW_VALUES:
        order = np.argsort(-counts, kind="stable")
        listed = ", ".join(f"{int(values[i]):+d} ({int(counts[i])} times)" for i in order)
        yield "few values", f"differences are {listed}"


def _find_bits(a: Array, b: Array, d: Integers) -> Iterator[tuple[str, str]]:
    changed = np.unique(np.bitwise_xor(a.astype(np.int64), b.astype(np.int64)) & ((1 << (8 * a.dtype.itemsize)) - 1))
    if len(changed) == 1 and int(changed[0]).bit_count() == 1 and len(d) >= _LEAST:
        yield "one bit", f"only bit {int(changed[0]).bit_length() - 1} differs"
        return
    joined = int(np.bitwise_or.reduce(np.abs(d)))
    power = (joined & -joined).bit_length() - 1
    if power and len(d) >= _LEAST:
        yield "multiples", f"every difference is a multiple of {1 << power}"


def _find_sign(d: Integers | Doubles) -> Iterator[tuple[str, str]]:
    if len(d) >= _LEAST and ((d > 0).all() or (d < 0).all()):
        yield "one sign", f"every value is {'higher' if d[0] > 0 else 'lower'} than expected"


def _find_clamp(got: Array, sound: Array, wrong: Mask) -> Iterator[tuple[str, str]]:
    """Test for one value on the differing elements: a limit if no value passes it, else a constant."""
    values = np.unique(got[wrong])
    if len(values) != 1 or int(wrong.sum()) < _LEAST:
        return
    v = values[0]
    if (sound[wrong] > v).all() and not (got > v).any():
        yield "clamp", f"the result is {int(v)} at every element with a larger expected value"
    elif (sound[wrong] < v).all() and not (got < v).any():
        yield "clamp", f"the result is {int(v)} at every element with a smaller expected value"
    else:
        yield "one value", f"the result is {int(v)} in all of them"


def _find_copy(got: Array, sound: Array, wrong: Mask) -> Iterator[tuple[str, str]]:
    for axis, name in name_axes(got.shape):
        k = find_copy(sound, got, wrong, axis)
        if k is not None and int(wrong.sum()) > 2 * _LEAST:
            side = "before" if k > 0 else "after"
            far = f"the {name} {side}" if abs(k) == 1 else f"{abs(k)} {name}s {side}"
            yield "copy", f"they contain the expected values of {far}"
            return


def find_copy(sound: Array, got: Array, wrong: Mask, axis: int) -> int | None:
    """Return the smallest shift k, positive first, with got[i] = sound[i - k] for all differing elements i."""
    wanted = got[wrong]
    for k in range(1, min(got.shape[axis], _MOST_STEPS + 1)):
        for step in (k, -k):
            if np.array_equal(np.roll(sound, step, axis)[wrong], wanted):
                return step
    return None


def _find_rounding(d: Integers, elements: int) -> Iterator[tuple[str, str]]:
    if int(np.abs(d).max()) == 1 and len(d) < _ROUNDING_SHARE * elements:
        yield "rounding", "at most 1 in less than 1 % of the elements: a rounding"


def _write_range(d: Integers | Doubles) -> str:
    if d.dtype.kind == "f":
        return f"differences {float(d.min()):+.4g} to {float(d.max()):+.4g}"
    return f"differences {int(d.min()):+d} to {int(d.max()):+d}"


def _correlate(a: Array, b: Array) -> float:
    x, y = (np.nan_to_num(v.astype(np.float64)) for v in (a, b))
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
