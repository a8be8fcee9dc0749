"""`tflq.freeze` and `tflq.verify_baseline`: store the tensors of a run in a file, and check a later run against it.

The command is `tflq verify`, with --freeze or --baseline; the pytest plug-in checks such files, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tflq import __version__
from tflq.api.options import CalibrationOptions, Inputs, Progress, SampleOptions, TargetOptions, silent
from tflq.api.read_model import read_model
from tflq.api.result import Result
from tflq.api.run import tensor_names
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, merge_settings
from tflq.api.verify import DEFAULT_SAMPLES
from tflq.diagnosis import baseline as runs
from tflq.diagnosis.baseline import Baseline, Change, FrozenTensor
from tflq.errors import InputError, UsageError
from tflq.files import write_bytes
from tflq.interpreter.execution.engine import State
from tflq.report import Column, Table, Verdict, identifier, word_of
from tflq.report.junit import Case, write_junit

_Check = Callable[[object], bool]


@dataclass(frozen=True)
class FrozenRun:
    """A run that can be repeated.

    Attributes:
        model: Path of the model.
        target: Target with merged settings; its name is None for the unchanged model.
        calibration: Ranges for the target.
        samples: Sample files, or the number of random samples.
        state: State handling of stateful models.
    """

    model: str
    target: TargetOptions
    calibration: CalibrationOptions
    samples: SampleOptions
    state: State | None

    @property
    def files(self) -> list[str]:
        """Paths of the files that the run reads."""
        ranges = () if self.calibration.ranges is None else (self.calibration.ranges,)
        named = (self.model, *_texts(self.samples.inputs), *_texts(self.calibration.samples), *ranges)
        return list(dict.fromkeys(_split(text)[1] for text in named))

    def replace_paths(self, change: Callable[[str], str]) -> FrozenRun:
        """Return the same run with every path replaced."""

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
        """Return the run in the form stored in the baseline."""
        own = asdict(replace(self.calibration, samples=_texts(self.calibration.samples)))
        return {
            "model": self.model,
            "target": self.target.name,
            "assignments": self.target.settings,
            "layers": self.target.layers,
            "calibration": {key: own["samples" if key == "files" else key] for key in _CALIBRATION},
            "inputs": _texts(self.samples.inputs),
            "real": self.samples.real,
            "samples": self.samples.count or DEFAULT_SAMPLES,
            "seed": self.samples.seed,
            "state": self.state,
        }


def run_from_json(run: Mapping[str, object], path: Path) -> FrozenRun:
    """Return the run stored in a baseline.

    Raises:
        InputError: The entry is damaged.
    """
    try:
        own = _values(_CALIBRATION, run["calibration"])
        stored = _values(_RUN, run)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: 'run' is damaged: {type(error).__name__} {error}; write it with --freeze") from None
    return FrozenRun(
        stored["model"],
        TargetOptions(stored["target"], stored["assignments"], stored["layers"]),
        CalibrationOptions(own.pop("files"), **own, real=stored["real"]),
        SampleOptions(
            stored["inputs"], stored["real"], None if stored["inputs"] else stored["samples"], stored["seed"]
        ),
        stored["state"],
    )


def _texts(inputs: Inputs) -> tuple[str, ...]:
    """Return the file names of samples; arrays are refused."""
    texts = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(
            "samples: a frozen run stores file names, not arrays. Write the arrays to a file and pass its path"
        )
    return texts


def _split(text: str) -> tuple[str, str]:
    """Split "NAME=FILE" after the equals sign; an existing file with an equals sign in its name is not split."""
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
"""Keys of a stored run, without the calibration -> check of the value."""
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
    """Return the stored values, each one checked."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is not an object")
    for key, check in checks.items():
        if not check(given[key]):
            raise ValueError(f"{key} is {given[key]!r}")
    return {key: tuple(given[key]) if isinstance(given[key], list) else given[key] for key in checks}


@dataclass(frozen=True)
class FreezeResult(Result):
    """A run that was frozen.

    Attributes:
        path: Path of the baseline.
        model: Path of the model.
        baseline: Content of the baseline.
    """

    FACTS = (
        Column("baseline", "baseline", get=lambda r: str(r.path)),
        Column("tensors", "tensors", get=lambda r: len(r.baseline.tensors)),
        Column("samples", "samples"),
    )

    path: Path
    model: str
    baseline: Baseline

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.baseline.tensors[0].samples) if self.baseline.tensors else 0

    @property
    def verdict(self) -> Verdict:
        """Number of tensors in the file."""
        return Verdict("", len(self.baseline.tensors), f"tensors frozen in {self.path}", self.model, self.samples)


@dataclass(frozen=True)
class BaselineResult(Result):
    """Changes since a run was frozen.

    Attributes:
        path: Path of the baseline.
        baseline: Content of the baseline.
        files: One sentence for each input file with changed content.
        changes: Changes of tensors.
    """

    FACTS = (
        Column("baseline", "baseline", get=lambda r: str(r.path)),
        Column("frozen_by", "frozen by tflq", get="baseline.version"),
        Column("tensors", "tensors", get=lambda r: len(r.baseline.tensors)),
        Column("equal", get="is_equal"),
        Column("files"),
    )

    path: Path
    baseline: Baseline
    files: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every tensor is unchanged; input files may have changed nevertheless."""
        return not self.changes

    def change_of(self, tensor: str) -> str | None:
        """Return the change of a tensor; None if it is unchanged."""
        return next((change.what for change in self.changes if change.tensor == tensor), None)

    @property
    def new(self) -> tuple[Change, ...]:
        """Changes that are tensors which the frozen run did not have."""
        known = {t.name for t in self.baseline.tensors}
        return tuple(change for change in self.changes if change.tensor not in known)

    @property
    def verdict(self) -> Verdict:
        """Number of tensors that changed."""
        number, total = len(self.changes), len(self.baseline.tensors)
        reference = f"{self.path}, frozen by tflq {self.baseline.version}"
        advice = f"the first in '{self.changes[0].tensor}'" if self.changes else ""
        unit = f"changes in {total} tensors"
        return Verdict(word_of(self.is_equal), number, unit, reference, advice=advice)

    @property
    def notes(self) -> Sequence[str]:
        """Files that changed."""
        return self.files

    def tables(self) -> Sequence[Table]:
        """Return a row for each change."""
        return [Table("changes", (identifier("tensor", "tensor"), Column("what", "change")), self.changes, "Changes")]

    def write_junit(self, path: str | Path) -> None:
        """Write a JUnit test for each tensor.

        Raises:
            OutputError: The file cannot be written.
        """
        cases = [Case(t.name, self.change_of(t.name)) for t in self.baseline.tensors]
        write_junit(Path(path), str(self.path), [*cases, *(Case(c.tensor, c.what) for c in self.new)])


def freeze(
    model: str | os.PathLike[str],
    path: str | Path,
    samples: SampleOptions = SampleOptions(),
    *,
    target: TargetOptions | str | None = None,
    calibration: CalibrationOptions = CalibrationOptions(),
    state: State | None = None,
    progress: Progress = silent,
) -> FreezeResult:
    """Run a model and store its tensors, for `verify_baseline` to check later.

    Args:
        model: Path of the model.
        path: Path of the baseline; file names in it are relative to its folder.
        samples: Sample files, or random samples (default: 100).
        target: Target to quantize for (default: the unchanged model).
        calibration: Ranges for the target.
        state: State handling of stateful models.
        progress: Progress callback.

    Raises:
        InputError: A model or samples without a file.
        TflqError: The run fails, or the file cannot be written.
    """
    if samples.take is not None:
        raise UsageError("--freeze stores all samples of its files; omit --take")
    if not isinstance(model, (str, os.PathLike)):
        raise InputError("model: a frozen run stores the path of its model. Pass a path")
    if samples.is_random and samples.count is None:
        samples = replace(samples, count=DEFAULT_SAMPLES)
    run = FrozenRun(os.fspath(model), merge_settings(target, calibration), calibration, samples, state)
    here = Path(path).parent.resolve()
    stored = run.replace_paths(lambda file: Path(os.path.relpath(file, here)).as_posix())
    tensors = _tensors(run, progress)
    files = {name: runs.digest_of_file(here / name) for name in stored.files}
    baseline = Baseline(__version__, stored.to_json(), files, tensors)
    write_bytes(Path(path), runs.baseline_bytes(baseline))
    return FreezeResult(Path(path), run.model, baseline)


def verify_baseline(path: str | Path, model: str | None = None, *, progress: Progress = silent) -> BaselineResult:
    """Repeat a frozen run and compare its tensors.

    Args:
        path: Path of the baseline; file names in it are relative to its folder.
        model: Other model to run instead of the frozen one.
        progress: Progress callback.

    Raises:
        InputError: The file is not a baseline, or a file of the run is missing.
    """
    path = Path(path)
    folder, baseline = path.parent, runs.read_baseline(path)
    stored = run_from_json(baseline.run, path)
    files = tuple(
        f"{name}: the file has changed since"
        for name, digest in baseline.files.items()
        if not (model is not None and name == stored.model) and runs.digest_of_file(folder / name) != digest
    )
    run = stored.replace_paths(lambda file: str(folder / file))
    run = run if model is None else replace(run, model=model)
    return BaselineResult(path, baseline, files, runs.changes(baseline.tensors, _tensors(run, progress)))


def _tensors(run: FrozenRun, progress: Progress) -> tuple[FrozenTensor, ...]:
    model = read_model(run.model)
    samples = choose_samples(model, run.samples)
    execution = choose_execution(model, run.target, run.calibration, state=run.state, progress=progress)
    graph = execution.graph
    written = tuple(dict.fromkeys([*(t for node in graph.nodes for t in node.outputs), *graph.outputs]))
    with progress("run", samples.count) as advance:
        return runs.freeze(execution, samples, tensor_names(graph, written), advance)
