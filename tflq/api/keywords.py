"""Keyword arguments of the use cases: the fields of their option records, so that type checkers find wrong names.

tests/api/test_keywords.py compares them with the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from tflq.api.options import CalibrationOptions, Inputs, LabelSource, TargetOptions
    from tflq.api.read_model import ModelSource
    from tflq.api.target import Arithmetic
    from tflq.api.trials import Span
    from tflq.benchmarks.board import Board
    from tflq.diagnosis.dumps.wanted import DumpOptions
    from tflq.interpreter.execution.engine import State
    from tflq.interpreter.runtimes import RuntimeName
    from tflq.oracle.package import Kernels, Package


class CalibrationKeywords(TypedDict, total=False):
    """Fields of `CalibrationOptions`."""

    samples: Inputs
    strategy: str | None
    batch_size: int | None
    momentum: float | None
    bins: int | None
    shuffle: int | None
    ranges: str | None
    template: str | None
    real: bool


class JudgeKeywords(TypedDict, total=False):
    """Fields of `JudgeOptions`."""

    data: str | None
    span: Span | None
    calibration: CalibrationOptions
    metric: str | None
    labels: LabelSource | None


class TrialKeywords(JudgeKeywords, total=False):
    """Fields of `TrialOptions`."""

    widths: tuple[int, ...]
    in_float: bool
    jobs: int
    scheduler: str | None
    results: Path | None


class BackwardKeywords(JudgeKeywords, total=False):
    """Fields of `BackwardOptions`."""

    drop: float | None


class BenchKeywords(TypedDict, total=False):
    """Fields of `BenchOptions`."""

    take: Span | None
    labels: LabelSource | None
    targets: tuple[str, ...]
    runtimes: tuple[RuntimeName, ...]
    target: TargetOptions
    calibration: CalibrationOptions
    mode: Literal["accuracy", "performance"]
    seconds: float | None
    threads: int
    at_least: float | None
    at_most: float | None
    board: Board | None
    metrics: tuple[str, ...]
    jobs: int
    scheduler: str | None
    recover: Span | None


class CompareKeywords(TypedDict, total=False):
    """Fields of `CompareOptions`."""

    isolated: bool
    tolerance: float
    tensors: tuple[str, ...]
    diagnose: bool
    dump: DumpOptions
    target: TargetOptions
    calibration: CalibrationOptions
    jobs: int
    scheduler: str | None
    top: int


class ConvertKeywords(TypedDict, total=False):
    """Fields of `ConvertOptions`."""

    calibration: CalibrationOptions
    recover: bool
    engine: Literal["auto"] | None
    trace_passes: bool
    passes: tuple[str, ...]


class DumpsKeywords(TypedDict, total=False):
    """Fields of `DumpsOptions`."""

    dump: DumpOptions
    target: TargetOptions
    calibration: CalibrationOptions


class DutKeywords(TypedDict, total=False):
    """Fields of `DutOptions`."""

    target: TargetOptions | str | None
    arithmetic: Arithmetic | None
    runtime: RuntimeName
    calibration: CalibrationOptions
    time_us: int | None
    name: str | None
    streams: Path | None
    link: Path | None


class EstimateKeywords(TypedDict, total=False):
    """Fields of `EstimateOptions`."""

    calibration: CalibrationOptions


class ExplainKeywords(TypedDict, total=False):
    """Fields of `ExplainOptions`."""

    sample: int
    target: TargetOptions | str | None
    arithmetic: Literal["tflite"] | None
    runtime: RuntimeName
    against_runtime: RuntimeName | None
    against: ModelSource | None
    dump: DumpOptions
    calibration: CalibrationOptions


class ExportKeywords(TypedDict, total=False):
    """Fields of `ExportOptions`."""

    vectors: Literal["c", "hex", "npz"]
    program: Literal["c99"] | None
    target: TargetOptions | str | None
    layers: tuple[str, ...]
    calibration: CalibrationOptions
    runtime: RuntimeName
    state: State | None


class RecoverKeywords(JudgeKeywords, total=False):
    """Fields of `RecoverOptions`."""

    verify: Span | None
    bias_only: bool
    rows: int
    seed: int
    random: bool
    jobs: int
    results: Path | None


class RunKeywords(TypedDict, total=False):
    """Fields of `RunOptions`."""

    target: TargetOptions | str | None
    arithmetic: Arithmetic | None
    runtime: RuntimeName
    calibration: CalibrationOptions
    state: State | None
    threads: int
    all_tensors: bool
    output: str | Path | None
    jobs: int
    scheduler: str | None


class SearchKeywords(TrialKeywords, total=False):
    """Fields of `SearchOptions`."""

    at_least: float | None
    at_most: float | None
    min_sqnr: float | None
    slack: float
    recover: bool
    objective: str
    verify: Span | None


class SensitivityKeywords(TrialKeywords, total=False):
    """Fields of `SensitivityOptions`."""

    spared: bool


class VerifyKeywords(TypedDict, total=False):
    """Fields of `VerifyOptions`."""

    package: Package
    kernels: Kernels
    runtime: RuntimeName
    state: State | None
    strict: bool
    jobs: int
    scheduler: str | None
