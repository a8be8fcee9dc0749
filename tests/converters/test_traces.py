"""The trace of passes on the keyword model, for every target: its lines parse, follow each other and name tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.kws import clips
from tflq.converters import tflite
from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import find_target, target_names
from tflq.graph import Graph
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import TensorPrinter
from tflq.graph.rewriting import Change, trace_passes

NAME = re.compile(r'%(?:"(?:[^"\\]|\\.)*"|[A-Za-z_][\w./;-]*)(?:#\d+)?', re.ASCII)
CHECKSUM = re.compile(r"= \.\.\. #[0-9a-f]{8}$")
MODELS = ("kws_ref_model.tflite", "kws_ref_model_float32.tflite")


def defined(line: str) -> list[str]:
    """Return the names of the tensors that a line declares or computes."""
    if line.startswith("output "):
        return []
    left, equals, _ = line.partition(" = ")
    return NAME.findall(left if equals else line)


def parse_lines(lines: Sequence[str]) -> Graph:
    """Return the graph of some lines; names of other lines are inputs, long constants zeros."""
    own = [name for line in lines for name in defined(line)]
    missing = dict.fromkeys(name for line in lines for name in NAME.findall(line) if name not in own)
    nodes = [CHECKSUM.sub("= zeros", line) for line in lines if not line.startswith("output ")]
    outputs = [line for line in lines if line.startswith("output ")]
    return parse_graph("\n".join(("graph {", *(f"input {n}: float32[1]" for n in missing), *nodes, *outputs, "}")))


def names_of(graph: Graph) -> Iterable[str]:
    printer = TensorPrinter(graph.tensors)
    return (printer.name(t).split("#")[0] for t in range(len(graph.tensors)))


def trace(target_name: str, model: str) -> tuple[Graph, Graph, list[Change]]:
    """Return the graph that the target reads, its result, and the trace."""
    target = find_target(target_name)
    graph = settled_graph(tflite.read_model(data_path("models", model)).main)
    if model == MODELS[1]:
        graph = calibrate(graph, [clips(8)[0].astype(np.float32)])
    settings = ["type=int8"] if (target_name, model) == ("tflm", MODELS[1]) else []  # no kernels for int8 weights alone
    with trace_passes() as changes:
        return graph, target.quantize(graph, parse_settings(target.settings, settings)), changes


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", target_names())
def test_the_trace_of_the_keyword_model_is_consistent(target: str, model: str) -> None:
    graph, result, changes = trace(target, model)
    known = {*names_of(graph), *names_of(result)}
    known.update(
        n.split("#")[0] for change in changes for line in (*change.before, *change.after) for n in defined(line)
    )
    removed = dict[str, Counter[str]]()
    for change in changes:
        assert (change.name, change.owner, change.why) > ("", "", "")
        assert Counter(change.before) != Counter(change.after), change.name
        parse_lines(change.before)
        parse_lines(change.after)
        gone = removed.setdefault(change.owner, Counter())
        gone.subtract(change.after)
        gone.update(change.before)
        assert max(gone.values()) <= 1, f"{change.name} removes a line that is not there"
        names = {name.split("#")[0] for line in change.after for name in NAME.findall(line)}
        assert names <= known, change.name
