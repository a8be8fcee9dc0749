"""The reference of the Python API: the public names of `tflq` in groups, rendered by mkdocstrings."""

from __future__ import annotations

from collections.abc import Mapping

import tflq
from site_pages.tables import table

FOLDER = "reference/api"
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "running": ("Run and verify", (
        "run", "RunOptions", "RunResult", "verify", "VerifyOptions", "VerifyResult", "freeze", "FreezeResult",
        "verify_baseline", "BaselineResult", "runtimes", "samples", "open_samples", "SampleSet",
        "SampleOptions", "demo", "Demo")),
    "comparing": ("Compare, diagnose, explain", (
        "compare", "CompareOptions", "CompareResult", "compare_runtimes", "CompareRuntimesResult", "prove",
        "ProveResult", "dumps", "DumpsOptions", "DumpsResult", "DumpOptions", "explain", "ExplainOptions",
        "ExplainResult", "diff", "DiffResult", "inspect", "InspectResult")),
    "converting": ("Calibrate, convert, export", (
        "convert", "convert_all", "ConvertOptions", "ConvertResult", "ConvertAllResult", "TargetOptions", "targets",
        "calibrate", "CalibrationOptions", "export", "ExportOptions", "ExportResult", "cut", "CutResult", "dequantize",
        "DequantizeResult", "estimate", "EstimateOptions", "EstimateResult")),
    "precision": ("Bit widths and recovery", (
        "sensitivity", "SensitivityOptions", "SensitivityResult", "search", "SearchOptions", "SearchResult", "Span",
        "BackwardOptions", "BackwardResult", "recover", "RecoverOptions", "RecoverResult")),
    "benchmarks": ("Accuracy and boards", (
        "bench", "BenchOptions", "BenchResult", "dut", "DutOptions", "Board", "models", "fetch_models", "data_sets",
        "fetch_data", "build_data")),
    "models": ("Models, graphs, engines", (
        "read_model", "write_model", "model_from_bytes", "model_to_bytes", "Model", "Graph", "GraphBuilder", "Tensor",
        "Affine", "DType", "Engine", "lower", "Interpreter", "load_kernels", "backend", "progress", "TflqError")),
}  # fmt: skip
"""Page -> title and public names."""
_HEAD = """# Python API

The public names are the entries of `tflq.__all__`. [Use tflq from Python](../../guides/python.md) calls them.

"""


def pages() -> Mapping[str, str]:
    """Return one page per group, and the list of names."""
    texts = {f"{FOLDER}/{name}.md": _page(title, names) for name, (title, names) in GROUPS.items()}
    rows = [(f"[{title}]({page}.md)", ", ".join(f"`{n}`" for n in names)) for page, (title, names) in GROUPS.items()]
    return {f"{FOLDER}/index.md": _HEAD + table(("page", "names"), rows), **texts}


def grouped_names() -> set[str]:
    """Return the names that a page has."""
    return {name for _, names in GROUPS.values() for name in names}


def _page(title: str, names: tuple[str, ...]) -> str:
    return f"# {title}\n\n" + "\n".join(f"::: {getattr(tflq, name).__module__}.{name}\n" for name in names)
