"""Options of the command line as the records that use cases take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions

_SAMPLES = {"inputs": "inputs", "real": "real", "samples": "count", "seed": "seed"}
_TARGET = {"target_name": "name", "assignments": "settings", "layers": "layers", "settings_path": "file"}
_CALIBRATION = {"calibrate": "samples", "real": "real"} | {
    name: name for name in ("strategy", "batch_size", "momentum", "bins", "shuffle", "ranges", "template")
}
_RECORDS: dict[str, tuple[type, dict[str, str]]] = {
    "samples": (SampleOptions, _SAMPLES),
    "target": (TargetOptions, _TARGET),
    "calibration": (CalibrationOptions, _CALIBRATION),
}


def records(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gather a command's parameters into `samples`, `target` and `calibration`, those of them that are named.

    It stands behind the options' own decorators, next to the function.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**given: object) -> object:
            made = {}
            for name in names:
                record, fields = _RECORDS[name]
                made[name] = record(**{field: given[option] for option, field in fields.items() if option in given})
            gathered = {option for name in names for option in _RECORDS[name][1]}
            return function(**made, **{option: value for option, value in given.items() if option not in gathered})

        return command

    return decorate
