"""tflq: reads .tflite files, requantizes them for NPUs, and runs TFLite's integers bit for bit in numpy.

Each command of `tflq` has a function of the same name in this package (docs/guides/python.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq import lite as lite
    from tflq.api.baseline import BaselineResult as BaselineResult, FreezeResult as FreezeResult, freeze as freeze
    from tflq.api.baseline import verify_baseline as verify_baseline
    from tflq.diagnosis.dumps.wanted import DumpOptions as DumpOptions
    from tflq.api.backward import BackwardOptions as BackwardOptions, BackwardResult as BackwardResult
    from tflq.api.bench import BenchOptions as BenchOptions, bench as bench
    from tflq.api.bench_result import BenchResult as BenchResult
    from tflq.api.calibrate import calibrate as calibrate
    from tflq.api.compare import CompareOptions as CompareOptions, CompareResult as CompareResult, compare as compare
    from tflq.api.compare_runtimes import (
        CompareRuntimesResult as CompareRuntimesResult,
        compare_runtimes as compare_runtimes,
    )
    from tflq.api.conversion import ConvertAllResult as ConvertAllResult, ConvertResult as ConvertResult
    from tflq.api.convert import ConvertOptions as ConvertOptions, convert as convert, convert_all as convert_all
    from tflq.api.prove import ProveResult as ProveResult, prove as prove
    from tflq.api.written_model import CutResult as CutResult, cut as cut
    from tflq.api.demo import Demo as Demo, demo as demo
    from tflq.api.written_model import DequantizeResult as DequantizeResult, dequantize as dequantize
    from tflq.api.diff import DiffResult as DiffResult, diff as diff
    from tflq.api.dumps import DumpsOptions as DumpsOptions, DumpsResult as DumpsResult, dumps as dumps
    from tflq.api.dut import DutOptions as DutOptions, dut as dut
    from tflq.api.estimate import EstimateOptions as EstimateOptions, EstimateResult as EstimateResult
    from tflq.api.estimate import estimate as estimate
    from tflq.api.explain import ExplainOptions as ExplainOptions, ExplainResult as ExplainResult, explain as explain
    from tflq.api.export import ExportOptions as ExportOptions, ExportResult as ExportResult, export as export
    from tflq.api.inspect import InspectResult as InspectResult, inspect as inspect
    from tflq.interpreter.kernel_files import load_kernels as load_kernels
    from tflq.api.mlperf_tiny import build_data as build_data, data_sets as data_sets, fetch_data as fetch_data
    from tflq.api.mlperf_tiny import fetch_models as fetch_models, models as models
    from tflq.api.options import CalibrationOptions as CalibrationOptions, SampleOptions as SampleOptions
    from tflq.api.options import TargetOptions as TargetOptions
    from tflq.cli.progress import progress as progress
    from tflq.api.read_model import read_model as read_model
    from tflq.api.recover import RecoverOptions as RecoverOptions, RecoverResult as RecoverResult, recover as recover
    from tflq.api.run import RunOptions as RunOptions, RunResult as RunResult, run as run
    from tflq.api.samples import SampleSet as SampleSet, open_samples as open_samples, samples as samples
    from tflq.api.search import SearchOptions as SearchOptions, SearchResult as SearchResult, search as search
    from tflq.api.sensitivity import SensitivityOptions as SensitivityOptions, SensitivityResult as SensitivityResult
    from tflq.api.sensitivity import sensitivity as sensitivity
    from tflq.api.runtimes import runtimes as runtimes
    from tflq.api.targets import targets as targets
    from tflq.api.trials import Span as Span
    from tflq.api.verify import VerifyOptions as VerifyOptions, VerifyResult as VerifyResult, verify as verify
    from tflq.benchmarks.board import Board as Board
    from tflq.converters.tflite import model_from_bytes as model_from_bytes, model_to_bytes as model_to_bytes
    from tflq.converters.tflite import write_model as write_model
    from tflq.errors import TflqError as TflqError
    from tflq.graph import Affine as Affine, DType as DType, Graph as Graph, GraphBuilder as GraphBuilder
    from tflq.graph import Model as Model, Tensor as Tensor
    from tflq.interpreter import Engine as Engine, lower as lower
    from tflq.backends import backend as backend
    from tflq.tflite_interpreter import Interpreter as Interpreter

__version__ = "0.1.0"

_HOMES = {
    "tflq.api.baseline": ("BaselineResult", "FreezeResult", "freeze", "verify_baseline"),
    "tflq.api.backward": ("BackwardOptions", "BackwardResult"),
    "tflq.api.bench": ("BenchOptions", "bench"),
    "tflq.api.bench_result": ("BenchResult",),
    "tflq.api.calibrate": ("calibrate",),
    "tflq.api.compare": ("CompareOptions", "CompareResult", "compare"),
    "tflq.api.compare_runtimes": ("CompareRuntimesResult", "compare_runtimes"),
    "tflq.api.prove": ("ProveResult", "prove"),
    "tflq.api.conversion": ("ConvertAllResult", "ConvertResult"),
    "tflq.api.convert": ("ConvertOptions", "convert", "convert_all"),
    "tflq.api.demo": ("Demo", "demo"),
    "tflq.api.written_model": ("CutResult", "DequantizeResult", "cut", "dequantize"),
    "tflq.api.diff": ("DiffResult", "diff"),
    "tflq.api.dumps": ("DumpsOptions", "DumpsResult", "dumps"),
    "tflq.api.dut": ("DutOptions", "dut"),
    "tflq.api.estimate": ("EstimateOptions", "EstimateResult", "estimate"),
    "tflq.api.explain": ("ExplainOptions", "ExplainResult", "explain"),
    "tflq.api.export": ("ExportOptions", "ExportResult", "export"),
    "tflq.api.inspect": ("InspectResult", "inspect"),
    "tflq.interpreter.kernel_files": ("load_kernels",),
    "tflq.api.mlperf_tiny": ("build_data", "data_sets", "fetch_data", "fetch_models", "models"),
    "tflq.api.options": ("CalibrationOptions", "SampleOptions", "TargetOptions"),
    "tflq.diagnosis.dumps.wanted": ("DumpOptions",),
    "tflq.cli.progress": ("progress",),
    "tflq.api.read_model": ("read_model",),
    "tflq.api.recover": ("RecoverOptions", "RecoverResult", "recover"),
    "tflq.api.run": ("RunOptions", "RunResult", "run"),
    "tflq.api.samples": ("SampleSet", "open_samples", "samples"),
    "tflq.api.search": ("SearchOptions", "SearchResult", "search"),
    "tflq.api.sensitivity": ("SensitivityOptions", "SensitivityResult", "sensitivity"),
    "tflq.api.runtimes": ("runtimes",),
    "tflq.api.targets": ("targets",),
    "tflq.api.trials": ("Span",),
    "tflq.api.verify": ("VerifyOptions", "VerifyResult", "verify"),
    "tflq.benchmarks.board": ("Board",),
    "tflq.converters.tflite": ("model_from_bytes", "model_to_bytes", "write_model"),
    "tflq.errors": ("TflqError",),
    "tflq.graph": ("Affine", "DType", "Graph", "GraphBuilder", "Model", "Tensor"),
    "tflq.interpreter": ("Engine", "lower"),
    "tflq.backends": ("backend",),
    "tflq.tflite_interpreter": ("Interpreter",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import tflq` stays quick."""
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name == "lite":
        return import_module("tflq.lite")
    raise AttributeError(f"module 'tflq' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names without importing them."""
    return sorted(__all__)
