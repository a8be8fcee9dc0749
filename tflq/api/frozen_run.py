"""What a frozen run ran, as options and as the baseline's JSON; its paths are told from the baseline's folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tflq.api.options import CalibrationOptions, Inputs, SampleOptions, TargetOptions
from tflq.errors import InputError
from tflq.interpreter.execution.engine import State

_Check = Callable[[object], bool]


@dataclass(frozen=True)
class FrozenRun:
    """A run that can be repeated.

    Attributes:
        model: path.
        target: complete; its name None for the model as it is.
        calibration: ranges for the target.
        samples: files, or random ones with their number.
        state: of models that keep any.
    """

    model: str
    target: TargetOptions
    calibration: CalibrationOptions
    samples: SampleOptions
    state: State | None

    @property
    def files(self) -> list[str]:
        """Paths of the files that went into the run."""
        ranges = () if self.calibration.ranges is None else (self.calibration.ranges,)
        named = (self.model, *_texts(self.samples.inputs), *_texts(self.calibration.samples), *ranges)
        return list(dict.fromkeys(_split(text)[1] for text in named))

    def moved(self, change: Callable[[str], str]) -> FrozenRun:
        """Return the same run with every path changed."""

        def all_changed(texts: Inputs) -> tuple[str, ...]:
            return tuple(f"{name}{change(path)}" for name, path in map(_split, _texts(texts)))

        own = self.calibration
        ranges = None if own.ranges is None else change(own.ranges)
        return replace(
            self,
            model=change(self.model),
            samples=replace(self.samples, inputs=all_changed(self.samples.inputs)),
            calibration=replace(own, samples=all_changed(own.samples), ranges=ranges),
        )

    def to_json(self) -> dict[str, object]:
        """Return the run as the baseline holds it."""
        own = asdict(replace(self.calibration, samples=_texts(self.calibration.samples)))
        return {
            "model": self.model,
            "target": self.target.name,
            "assignments": self.target.settings,
            "layers": self.target.layers,
            "calibration": {key: own["samples" if key == "files" else key] for key in _CALIBRATION},
            "inputs": _texts(self.samples.inputs),
            "real": self.samples.real,
            "samples": self.samples.count,
            "seed": self.samples.seed,
            "state": self.state,
        }


def run_from_json(run: Mapping[str, object], path: Path) -> FrozenRun:
    """Return the run that a baseline holds.

    Raises:
        InputError: it is damaged.
    """
    try:
        own = _values(_CALIBRATION, run["calibration"])
        told = _values(_RUN, run)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: 'run' is damaged: {type(error).__name__} {error}; write it with --freeze") from None
    return FrozenRun(
        told["model"],
        TargetOptions(told["target"], told["assignments"], told["layers"]),
        CalibrationOptions(own.pop("files"), **own, real=told["real"]),
        SampleOptions(told["inputs"], told["real"], told["samples"], told["seed"]),
        told["state"],
    )


def _texts(inputs: Inputs) -> tuple[str, ...]:
    """Return samples as the files that name them."""
    texts = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    if not all(isinstance(text, str) for text in texts):
        raise InputError("a frozen run keeps the names of its samples, not arrays: write them to a file and name it")
    return texts


def _split(text: str) -> tuple[str, str]:
    """Cut "NAME=FILE" behind the sign; a file that has one in its name stands alone."""
    if "=" not in text or os.path.exists(text):
        return "", text
    name, _, path = text.partition("=")
    return f"{name}=", path


def _is(*kinds: type) -> _Check:
    return lambda value: isinstance(value, kinds)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


_MAYBE_TEXT, _MAYBE_NUMBER = _is(str, type(None)), _is(int, type(None))
_RUN: dict[str, _Check] = {
    "model": _is(str),
    "target": _MAYBE_TEXT,
    "assignments": _is_texts,
    "layers": _is_texts,
    "inputs": _is_texts,
    "real": _is(bool),
    "samples": _is(int),
    "seed": _is(int),
    "state": _MAYBE_TEXT,
}
"""What JSON holds for a run, beside the calibration."""
_CALIBRATION: dict[str, _Check] = {
    "files": _is_texts,
    "strategy": _MAYBE_TEXT,
    "batch_size": _MAYBE_NUMBER,
    "momentum": _is(int, float, type(None)),
    "bins": _MAYBE_NUMBER,
    "shuffle": _MAYBE_NUMBER,
    "ranges": _MAYBE_TEXT,
    "template": _MAYBE_TEXT,
}


def _values(checks: Mapping[str, _Check], given: object) -> dict[str, Any]:
    """Return what JSON holds, each value checked."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is no object")
    for key, check in checks.items():
        if not check(given[key]):
            raise ValueError(f"{key} is {given[key]!r}")
    return {key: tuple(given[key]) if isinstance(given[key], list) else given[key] for key in checks}
