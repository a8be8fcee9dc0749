"""`tflq.run`: a model over many samples, in TFLite's, a target's or floating-point arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, read_model
from tflq.api.result import Result
from tflq.api.samples import samples as choose_samples
from tflq.api.target import Arithmetic, choose_execution, complete
from tflq.emit.archives import write_npz
from tflq.errors import UsageError
from tflq.graph import Array, Graph
from tflq.interpreter.execution.engine import State
from tflq.interpreter.execution.values import concatenate
from tflq.interpreter.runtimes import REFERENCE, RuntimeName
from tflq.parallel.executions import Execution, spread
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.report.table import words
from tflq.sampling import Samples


@dataclass(frozen=True)
class RunOptions:
    """How a model runs.

    Attributes:
        target: quantize for this target and run its integers.
        arithmetic: "tflite", the params of TFLite's reference kernels, or "float", the model's float view; None for
            the target's, or TFLite's without one.
        runtime: Runtime of TFLite's integers, as `runtimes` lists them (default: TFLite's reference kernels).
        calibration: ranges for the target.
        state: for models that keep state.
        threads: run so many chunks of samples at the same time; results do not depend on it.
        all_tensors: return every tensor that an operator writes, not the outputs alone.
        output: an .npz to write the tensors to.
        jobs: processes to use; those of more than one import the program that calls, which must not run then.
        scheduler: address of a dask scheduler whose workers are used instead.
    """

    target: TargetOptions | str | None = None
    arithmetic: Arithmetic | None = None
    runtime: RuntimeName = REFERENCE
    calibration: CalibrationOptions = CalibrationOptions()
    state: State | None = None
    threads: int = 1
    all_tensors: bool = False
    output: str | Path | None = None
    jobs: int = 1
    scheduler: str | None = None


@dataclass(frozen=True)
class RunResult(Result):
    """What came out of a run.

    Attributes:
        arithmetic: "as is", "float", or the name of the target or runtime.
        samples: how many were run.
        tensors: dtype[S, *shape] by name, in the encoding of the graph that ran; names are unique, with the tensor's
            index behind them where the graph's are not.
        output: the file that was written, or None.
    """

    FACTS = (Column("arithmetic", "arithmetic"), Column("samples", "samples"), Column("output", "written"))

    arithmetic: str
    samples: int
    tensors: Mapping[str, Array]
    output: str | None

    @property
    def verdict(self) -> Verdict:
        """Number of tensors."""
        written = "" if self.output is None else f"written: {self.output}"
        return Verdict("", len(self.tensors), f"tensors computed {self.arithmetic}", "", self.samples, written)

    def tables(self) -> Sequence[Table]:
        """Return type, shape and extremes of each tensor."""
        return [Table("tensors", _TENSORS, list(self.tensors.items()), "Tensors")]


def run(
    model: ModelSource,
    samples: SampleSource = None,
    options: RunOptions = RunOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> RunResult:
    """Run a model over samples and return what comes out.

    Args:
        model: to run.
        samples: in the model's own type and encoding, or real numbers (`SampleOptions.real`); a target converts them
            itself. One random sample where none are named.
        options: arithmetic, target, and which tensors.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError: options that contradict each other.
        InputError, OptionError, UnsupportedError: samples, settings or a model that do not fit.
    """
    options = changed(options, changes)
    if options.output is not None and Path(options.output).suffix != ".npz":
        raise UsageError(f"--output {options.output}: the name must end in .npz")
    target = complete(options.target, options.calibration)
    found = read_model(model)
    chosen = choose_samples(found, samples)
    execution = choose_execution(
        found,
        target,
        options.calibration,
        arithmetic=options.arithmetic,
        runtime=options.runtime,
        state=options.state,
        progress=progress,
    )
    execution.engine.threads = options.threads
    with spread(execution, options.jobs, options.scheduler) as shared:
        tensors = _run(shared, chosen, options.all_tensors, progress)
    if options.output is not None:
        write_npz(Path(options.output), dict(tensors))
    return RunResult(execution.name, chosen.count, tensors, None if options.output is None else str(options.output))


def tensor_names(graph: Graph, indices: Sequence[int]) -> dict[int, str]:
    """Name tensors uniquely: by their name, with the index behind it where the name is empty or used twice."""
    names = [graph.tensors[t].name for t in indices]
    return {
        t: name if name and names.count(name) == 1 else f"{name or 'tensor'}#{t}"
        for t, name in zip(indices, names, strict=True)
    }


def _run(execution: Execution, samples: Samples, all_tensors: bool, progress: Progress) -> dict[str, Array]:
    graph = execution.graph
    written = [t for node in graph.nodes for t in node.outputs] if all_tensors else dict.fromkeys(graph.outputs)
    names = tensor_names(graph, tuple(written))
    chunks = []
    with progress("run", samples.count) as advance:
        for chunk in execution.iterate(samples, tuple(names)):
            chunks.append(chunk)
            advance(len(next(iter(chunk.values()))) if chunk else 0)
    return {name: concatenate([chunk[t] for chunk in chunks]) for t, name in names.items()}


_Named: TypeAlias = "tuple[str, Array]"
_VALUES = 12
"""Values of the first sample in the text."""


def _extreme(row: _Named, name: Literal["min", "max"]) -> Json:
    array = row[1]
    return getattr(array, name)().item() if array.dtype.kind in "fiub" and array.size else None


def _values(row: _Named) -> str:
    array = row[1]
    flat = array[0].ravel() if array.size else array.ravel()
    shown = " ".join(words(v.item()) if array.dtype.kind in "fiu" else str(v) for v in flat[:_VALUES])
    return shown + (" ..." if flat.size > _VALUES else "")


_TENSORS = (
    identifier("name", "tensor", lambda row: row[0]),
    Column("", "type", get=lambda row: f"{row[1].dtype}{list(row[1].shape)}"),
    Column("dtype", get=lambda row: str(row[1].dtype)),
    Column("shape", get=lambda row: row[1].shape),
    number("smallest", "smallest", lambda row: _extreme(row, "min")),
    number("largest", "largest", lambda row: _extreme(row, "max")),
    Column("", "first sample", get=_values, rank=1),
)
