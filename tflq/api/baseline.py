"""`tflq.freeze` and `tflq.verify_baseline`: what a run gives, kept in a file, and whether it still does.

The command is `tflq verify`, with --freeze or --baseline; the pytest plug-in checks such files, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflq import __version__
from tflq.analysis import baseline as analysis
from tflq.analysis.baseline import Baseline, Change, FrozenTensor
from tflq.analysis.junit import Case, write_junit
from tflq.api.frozen_run import FrozenRun, run_from_json
from tflq.api.options import CalibrationOptions, Progress, SampleOptions, TargetOptions, silent
from tflq.api.read_model import read_model
from tflq.api.result import Result, TableResult, picked
from tflq.api.run import tensor_names
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, complete
from tflq.api.verify import DEFAULT_SAMPLES
from tflq.errors import InputError
from tflq.files import write_bytes
from tflq.interpreter.execution.engine import State
from tflq.quoting import Json


@dataclass(frozen=True)
class FreezeResult(Result):
    """A run that was frozen.

    Attributes:
        path: of the baseline.
        model: path of what ran.
        baseline: what was written.
    """

    path: Path
    model: str
    baseline: Baseline

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.baseline.tensors[0].samples) if self.baseline.tensors else 0

    def report(self) -> Mapping[str, Json]:
        """Return the file and how much is in it."""
        return {"baseline": str(self.path), "tensors": len(self.baseline.tensors), "samples": self.samples}


@dataclass(frozen=True)
class BaselineResult(TableResult):
    """What has changed since a run was frozen.

    Attributes:
        path: of the baseline.
        baseline: as it was read.
        files: what is said of files whose content changed.
        changes: of tensors.
    """

    path: Path
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

    @property
    def new(self) -> tuple[Change, ...]:
        """The changes that are tensors which the frozen run did not have."""
        known = {t.name for t in self.baseline.tensors}
        return tuple(change for change in self.changes if change.tensor not in known)

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each change."""
        return [picked(change, "tensor", "what") for change in self.changes]

    def report(self) -> Mapping[str, Json]:
        """Return what was compared and the rows."""
        return {
            "baseline": str(self.path),
            "frozen_by": self.baseline.version,
            "tensors": len(self.baseline.tensors),
            "equal": self.is_equal,
            "files": self.files,
            "changes": self.rows(),
        }

    def write_junit(self, path: str | Path) -> None:
        """Write a JUnit test for each tensor.

        Raises:
            OutputError: the file cannot be written.
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
    """Run a model and write what every tensor was, for `verify_baseline` to check later.

    Args:
        model: path of the model.
        path: of the baseline; the run's files are named as seen from its folder.
        samples: files, or 100 random ones.
        target: run this target's integers; the model as it is without one.
        calibration: ranges for the target.
        state: for models that keep state.
        progress: shows how far it is.

    Raises:
        InputError: a model or samples without a file, which nobody could find again.
        TflqError: what the run raises, or the file cannot be written.
    """
    if not isinstance(model, (str, os.PathLike)):
        raise InputError("a frozen run says where its model is: give the model's path")
    samples = replace(samples, count=samples.count or DEFAULT_SAMPLES)
    run = FrozenRun(os.fspath(model), complete(target, calibration), calibration, samples, state)
    here = Path(path).parent.resolve()
    told = run.moved(lambda file: Path(os.path.relpath(file, here)).as_posix())
    tensors = _tensors(run, progress)
    files = {name: analysis.digest_of_file(here / name) for name in told.files}
    baseline = Baseline(__version__, told.to_json(), files, tensors)
    write_bytes(Path(path), analysis.baseline_bytes(baseline))
    return FreezeResult(Path(path), run.model, baseline)


def verify_baseline(path: str | Path, model: str | None = None, *, progress: Progress = silent) -> BaselineResult:
    """Repeat a frozen run and compare.

    Args:
        path: of the baseline; the run's files are found as seen from its folder.
        model: another model to run instead of the frozen one.
        progress: shows how far it is.

    Raises:
        InputError: no baseline, or a file of the run is missing.
    """
    path = Path(path)
    folder, baseline = path.parent, analysis.read_baseline(path)
    told = run_from_json(baseline.run, path)
    files = tuple(
        f"{name}: the file has changed since"
        for name, digest in baseline.files.items()
        if not (model is not None and name == told.model) and analysis.digest_of_file(folder / name) != digest
    )
    run = told.moved(lambda file: str(folder / file))
    run = run if model is None else replace(run, model=model)
    return BaselineResult(path, baseline, files, analysis.changes(baseline.tensors, _tensors(run, progress)))


def _tensors(run: FrozenRun, progress: Progress) -> tuple[FrozenTensor, ...]:
    model = read_model(run.model)
    samples = choose_samples(model, run.samples)
    execution = choose_execution(model, run.target, run.calibration, state=run.state, progress=progress)
    graph = execution.graph
    written = tuple(dict.fromkeys([*(t for node in graph.nodes for t in node.outputs), *graph.outputs]))
    with progress("run", samples.count) as advance:
        return analysis.freeze(execution, samples, tensor_names(graph, written), advance)
