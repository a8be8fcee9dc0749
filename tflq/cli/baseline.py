"""Frozen runs: what `tflq verify --freeze` writes and `tflq verify --baseline` and the pytest plug-in check."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibrated
from tflq.cli.common import choose_samples, chosen_state, read_model, tensor_names
from tflq.cli.target_options import choose_target
from tflq.errors import InputError

if TYPE_CHECKING:
    from tflq.analysis.baseline import Baseline, Change, FrozenTensor
    from tflq.analysis.executions import Execution
    from tflq.graph import Model


@dataclass(frozen=True)
class Asked:
    """A run as the command line asks for it.

    Attributes:
        model: path.
        target: name; None for the model as it is.
        assignments: --set.
        layers: --layer.
        calibration: --calibrate and what belongs to it.
        inputs: --input; random samples where there are none.
        real: --real.
        samples: number of random samples.
        seed: of random samples.
        state: of models that keep any.
    """

    model: str
    target: str | None
    assignments: tuple[str, ...]
    layers: tuple[str, ...]
    calibration: CalibrationChoice
    inputs: tuple[str, ...]
    real: bool
    samples: int
    seed: int
    state: str | None


@dataclass(frozen=True)
class Report:
    """What has changed since a run was frozen.

    Attributes:
        baseline: as it was read.
        files: what is said of files whose content changed.
        changes: of tensors.
    """

    baseline: Baseline
    files: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every tensor is as it was; a file may have changed all the same."""
        return not self.changes

    def change_of(self, tensor: str) -> str | None:
        """Return what changed in a tensor."""
        return next((change.what for change in self.changes if change.tensor == tensor), None)


def freeze(asked: Asked, path: Path) -> Baseline:
    """Run what is asked and write its baseline.

    Raises:
        TflqError: what the run raises, or the file cannot be written.
    """
    from tflq import __version__
    from tflq.analysis.baseline import Baseline, baseline_bytes
    from tflq.files import write_bytes

    tensors = _run(asked)
    here = path.parent.resolve()
    told = _map_paths(asked, lambda file: Path(os.path.relpath(file, here)).as_posix())
    files = {name: _digest(here / name) for name in _files(told)}
    baseline = Baseline(__version__, _to_report(told), files, tensors)
    write_bytes(path, baseline_bytes(baseline))
    return baseline


def check(path: Path, model: str | None = None) -> Report:
    """Repeat a frozen run and compare.

    Args:
        path: of the baseline; the run's files are found as seen from its folder.
        model: another model to run instead of the frozen one.

    Raises:
        InputError: no baseline, or a file of the run is missing.
    """
    from tflq.analysis.baseline import changes, read_baseline

    baseline = read_baseline(path)
    told = _from_report(baseline.run, path)
    files = tuple(
        f"{name}: the file has changed since"
        for name, digest in baseline.files.items()
        if not (model is not None and name == told.model) and _digest(path.parent / name) != digest
    )
    asked = _map_paths(told, lambda file: str(path.parent / file))
    asked = asked if model is None else replace(asked, model=model)
    return Report(baseline, files, changes(baseline.tensors, _run(asked)))


def _run(asked: Asked) -> tuple[FrozenTensor, ...]:
    from tflq.analysis.baseline import freeze as digest

    model = read_model(asked.model)
    samples = choose_samples(model, asked.inputs, asked.real, asked.samples, asked.seed)
    execution = _execution(asked, calibrated(model, asked.calibration, asked.real))
    graph = execution.graph
    written = tuple(dict.fromkeys([*(t for node in graph.nodes for t in node.outputs), *graph.outputs]))
    with output.Bar("run", samples.count) as bar:
        return digest(execution, samples, tensor_names(graph, written), bar.advance)


def _execution(asked: Asked, model: Model) -> Execution:
    from tflq.analysis.executions import as_is, for_target

    if asked.target is not None:
        return for_target(model.main, *choose_target(asked.target, asked.assignments, asked.layers))
    return as_is(model, chosen_state(asked.state))


def _digest(path: Path) -> str:
    from tflq.analysis.baseline import digest_of_file

    return digest_of_file(path)


def _files(asked: Asked) -> list[str]:
    named = [asked.model, *asked.inputs, *asked.calibration.files]
    ranges = [] if asked.calibration.ranges is None else [asked.calibration.ranges]
    return list(dict.fromkeys(_split(text)[1] for text in (*named, *ranges)))


def _map_paths(asked: Asked, change: Callable[[str], str]) -> Asked:
    """Return the same run with every path changed."""

    def named(text: str) -> str:
        name, path = _split(text)
        return f"{name}{change(path)}"

    choice = asked.calibration
    ranges = None if choice.ranges is None else change(choice.ranges)
    return replace(
        asked,
        model=change(asked.model),
        inputs=tuple(map(named, asked.inputs)),
        calibration=replace(choice, files=tuple(map(named, choice.files)), ranges=ranges),
    )


def _split(text: str) -> tuple[str, str]:
    """Cut "NAME=FILE" behind the sign; a file that has one in its name stands alone."""
    if "=" not in text or os.path.exists(text):
        return "", text
    name, _, path = text.partition("=")
    return f"{name}=", path


def _to_report(asked: Asked) -> dict[str, object]:
    return {**asdict(asked), "calibration": asdict(asked.calibration)}


def _from_report(run: Mapping[str, object], path: Path) -> Asked:
    try:
        choice = CalibrationChoice(**_values(CalibrationChoice, run["calibration"]))
        return Asked(**_values(Asked, run), calibration=choice)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: 'run' is damaged: {type(error).__name__} {error}; write it with --freeze") from None


_KINDS: dict[str, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int),
    "int | None": lambda value: value is None or isinstance(value, int),
    "float | None": lambda value: value is None or isinstance(value, (int, float)),
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "tuple[str, ...]": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
}
"""What JSON holds for a field, by the field's annotation."""


def _values(kind: type[Asked | CalibrationChoice], given: object) -> dict[str, Any]:
    """Return the plain fields of a dataclass out of JSON, each checked."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{kind.__name__} is no object")
    found: dict[str, Any] = {}
    for field in fields(kind):
        check_kind = _KINDS.get(str(field.type))
        if check_kind is None:  # a field with fields of its own
            continue
        value = given[field.name]
        if not check_kind(value):
            raise ValueError(f"{field.name} is {value!r}")
        found[field.name] = tuple(value) if isinstance(value, list) else value
    return found
