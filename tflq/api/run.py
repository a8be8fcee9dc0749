"""`tflq.run`: a model over many samples, in TFLite's, a target's or floating-point arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, read_model
from tflq.api.result import Result
from tflq.api.samples import samples as choose_samples
from tflq.api.target import Arithmetic, choose_execution, merge_settings
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

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import RunKeywords


@dataclass(frozen=True)
class RunOptions:
    """Options of a run.

    With several jobs, processes import the calling program, which must not start the run on import.

    Attributes:
        target: Target to quantize for (default: the unchanged model).
        arithmetic: Arithmetic to compute: tflite, the params of TFLite's reference kernels; float, the model's float
            view (default: the target's, or tflite without a target).
        runtime: Runtime to compute the integers of: TFLite's reference kernels, or another one that `tflq runtimes`
            lists.
        calibration: Ranges for the target.
        state: State handling of stateful models: independent, a new state for each sample; stream, samples that are
            successive invocations.
        threads: Number of chunks of samples that run at the same time; results do not depend on it. More than one pays
            off with one thread for numpy's own products: OPENBLAS_NUM_THREADS=1.
        all_tensors: True to return the outputs of all operators instead of the model's outputs only.
        output: File .npz for the tensors, each under its name: dtype[samples, *shape].
        jobs: Number of processes that share the samples; results do not depend on it.
        scheduler: Address of a dask scheduler with workers to use instead of processes (extra `cluster`).
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
    """Tensors of a run.

    Attributes:
        arithmetic: Name of the target or runtime, "float", or `executions.AS_IS` for the unchanged model.
        samples: Number of samples.
        tensors: Unique name -> dtype[S, *shape], in the encoding of the graph that ran; names that are not unique in
            the graph are followed by the tensor's index.
        output: Path of the written file, or None.
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
    **changes: Unpack[RunKeywords],
) -> RunResult:
    """Run a model over samples and return its outputs.

    Args:
        model: Model to run.
        samples: Samples in the model's own type and encoding, or floating-point values (`SampleOptions.real`); a target
            converts them itself (default: one random sample).
        options: Arithmetic, target, and tensors to return.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: Options that contradict each other.
        InputError, OptionError, UnsupportedError: Samples, settings or a model that do not fit.
    """
    options = replace_options(options, changes)
    if options.output is not None and Path(options.output).suffix != ".npz":
        raise UsageError(f"--output {options.output}: the name must end in .npz")
    target = merge_settings(options.target, options.calibration)
    original = read_model(model)
    chosen = choose_samples(original, samples)
    execution = choose_execution(
        original,
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
    """Return unique names of tensors: an empty or repeated name is followed by the tensor's index."""
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
