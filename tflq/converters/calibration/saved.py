"""What ai-edge-quantizer saves of a calibration: ranges, and what GPTQ and OSCAR ask for.

A JSON object whose `model_qsvs` are name -> {"min": nested list of one number, "max": the same, ...}; `hessian` and
`mu2` are nested lists of more (docs/tflite_target.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError

Pairs = list[tuple[str, object]]
"""An object as JSON's reader has it before names may repeat."""

_TENSORS = "model_qsvs"
_STATISTICS = ("hessian", "mu2", "num_samples")


def saved_ranges(content: Pairs) -> Pairs | None:
    """Return name -> [minimum, maximum] of such a file; None for other files."""
    if not _is_object(dict(content).get(_TENSORS)):
        return None
    return [
        (name, [_innermost(pairs[end]) for end in ("min", "max") if end in pairs])
        for name, pairs in _tensors(content).items()
    ]


def saved_statistics(content: Pairs, where: str) -> dict[str, Mapping[str, NDArray[np.float64]]]:
    """Return name -> what such a file says beside the ranges.

    Raises:
        InputError: something that is no array of finite numbers.
    """
    found: dict[str, Mapping[str, NDArray[np.float64]]] = {}
    for name, pairs in _tensors(content).items():
        kept = {
            what: _array(pairs[what], f"{where}: {what} of tensor '{name}'") for what in _STATISTICS if what in pairs
        }
        if kept:
            found[name] = kept
    return found


def _tensors(content: Pairs) -> dict[str, dict[str, object]]:
    found = dict(content).get(_TENSORS)
    return {name: dict(pairs) for name, pairs in found if _is_object(pairs)} if _is_object(found) else {}


def _is_object(value: object) -> TypeGuard[Pairs]:
    return isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)


def _innermost(value: object) -> object:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _array(value: object, where: str) -> NDArray[np.float64]:
    try:
        found = np.array(cast("list[float]", value), np.float64)
    except (ValueError, TypeError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise InputError(f"{where}: allowed are nested lists of equal length, of finite numbers")
    return found
