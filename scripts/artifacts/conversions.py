"""The conversions of a comparison: settings of each target, model files, and the subset of `--quick`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tflq.converters.targets import target_names
from tflq.converters.tflite import read_model
from tflq.errors import TflqError
from tflq.graph import ABSENT, Graph

SETTINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "aipu": ((), ("activations=asymmetric", "weights=per_channel"), ("activation_bits=16",)),
    "gap9-ne16": ((), ("weight_bits=4",), ("feature_bits=16",)),
    "gap9-sq8": ((), ("numerics=nntool", "expressions=true")),
    "nnie": ((), ("bits=16",)),
    "onnx": ((), ("form=qdq",), ("form=weights",)),
    "openvino": ((), ("precision=float",), ("input=int8", "output=int8")),
    "tflite": ((), ("type=int16x8",), ("type=hybrid",), ("type=float",)),
    "tflm": ((), ("fully_connected=float32",), ("type=int8",)),
    "tpu-mlir": ((), ("asymmetric=true",), ("mode=F16",)),
}
"""Target -> the settings that it converts every model with; a target of another package has its defaults only."""

FOLDERS = ("models", "cases/keras", "zoo")
"""Folders of models below the one that TFLQ_DATA names."""

QUICK_FILES = 2
"""Number of files of `--quick` that contain a feature: a target may refuse one of them for another reason."""

QUICK_NODES = 100
"""Number of nodes of the largest graph that `--quick` takes."""

Conversion = tuple[str, tuple[str, ...]]
"""Target and its settings."""


def list_conversions(targets: Sequence[str]) -> list[Conversion]:
    """Return the conversions of each model: every target with each of its settings.

    Args:
        targets: Names of targets; all if empty.
    """
    names = targets or target_names()
    return [(name, settings) for name in names for settings in SETTINGS.get(name, ((),))]


def list_models(paths: Sequence[Path], pattern: str | None) -> list[Path]:
    """Return the .tflite files at or below some paths, sorted.

    Args:
        paths: Files and folders; the folders of TFLQ_DATA if empty.
        pattern: Shell pattern that a file's path or name matches; None for all files.
    """
    data = os.environ.get("TFLQ_DATA")
    roots = paths or ([Path(data, folder) for folder in FOLDERS] if data else [])
    files = {file.resolve() for root in roots for file in ([root] if root.is_file() else root.rglob("*.tflite"))}
    return sorted(f for f in files if pattern is None or fnmatch(str(f), pattern) or fnmatch(f.name, pattern))


def choose_quick(files: Iterable[Path]) -> list[Path]:
    """Return a subset of files with every operator and every pair of neighbors of all files.

    A feature is an operator with the types of its operands, or a producer and its consumer. The file with the most
    missing features per node is added until each feature occurs in QUICK_FILES files, or in all files that contain it.
    Graphs of more than QUICK_NODES nodes are omitted.
    """
    features: dict[Path, frozenset[object]] = {}
    nodes: dict[Path, int] = {}
    for file in files:
        try:
            graph = read_model(os.fspath(file)).main
        except TflqError:
            continue
        if len(graph.nodes) <= QUICK_NODES:
            features[file], nodes[file] = frozenset(_features(graph)), len(graph.nodes)
    missing = Counter(feature for of_file in features.values() for feature in of_file)
    missing = Counter({feature: min(count, QUICK_FILES) for feature, count in missing.items()})
    chosen: list[Path] = []
    while missing:
        best = max(features, key=lambda file: (len(features[file] & missing.keys()) / (8 + nodes[file]), str(file)))
        chosen.append(best)
        missing = +(missing - Counter(features.pop(best)))
    return sorted(chosen)


def _features(graph: Graph) -> Iterable[object]:
    writers: dict[int, str] = {}
    for node in graph.nodes:
        operands = [t for t in node.inputs if t != ABSENT]
        yield node.operator, tuple(graph.tensors[t].dtype for t in operands)
        yield from ((writers[t], node.operator) for t in operands if t in writers)
        writers.update(dict.fromkeys(node.outputs, node.operator))
