"""Labelled samples out of a data description: folders of images or sound, one a class (docs/data.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflq.analysis.inputs import GivenSamples
from tflq.analysis.inputs.described import described_array, read_description
from tflq.benchmarks.accuracy import LabelledSamples
from tflq.errors import InputError
from tflq.graph import Graph

SUFFIX = ".json"


def is_description(path: Path) -> bool:
    """Whether a data set is named by its description."""
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def load_described(path: Path, graph: Graph, count: int | None = None) -> LabelledSamples:
    """Read the files of a description for a classifier: all, or the first `count`.

    Raises:
        InputError: no labels; more classes than the model's output has elements; what the files raise.
        MissingExtraError: the package that reads the files is not installed.
    """
    description = read_description(path).first(count)
    if description.truth is not None:
        raise InputError(
            f"{path}: its labels are {description.truth.kind}, which `tflq bench`, search and sensitivity take"
        )
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{path}: gives samples of one input for one output; the model has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    if description.labels is None:
        raise InputError(f'{path}: says no labels; add "labels": "folders" where each class has a folder of its own')
    outputs = graph.tensors[graph.outputs[0]].size
    if len(description.classes) > outputs:
        raise InputError(f"{path}: has {len(description.classes)} classes, the model's output has {outputs} elements")
    array, _ = described_array(description, graph.tensors[graph.inputs[0]])
    return LabelledSamples(GivenSamples([array]), np.array(description.labels, np.int64), outputs, description.files)
