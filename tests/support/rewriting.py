"""Passes as text: the nodes of a graph before and after, one a line, and the values of both."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tflq.graph import Graph
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import format_graph
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter import Engine


def graph_text(inputs: str, nodes: str, outputs: str = "%y") -> str:
    """Return the text of a graph; `inputs` has the inputs and constants, separated by new lines as `nodes`."""
    ends = "\n".join(f"output {name}" for name in outputs.split())
    return f"graph g {{\n{inputs}\n{nodes}\n{ends}\n}}\n"


def rewrite_text(run: Callable[[GraphEditor], None], text: str) -> Graph:
    """Return the graph of a text after a pass."""
    editor = GraphEditor(parse_graph(text))
    run(editor)
    return editor.graph(prune=True)


def node_lines(graph: Graph) -> list[str]:
    """Return the printed nodes without their names and the types of their results."""
    lines = [line.strip() for line in format_graph(graph).splitlines() if " = " in line and "(" in line]
    return [re.sub(r': [a-z0-9]+\[[0-9,]*\]| "[^"]*"$', "", line) for line in lines if not line.startswith("const")]


def float_results(graph: Graph, seed: int = 1) -> list[np.ndarray]:
    """Return the outputs of a float graph for two random samples."""
    rng = np.random.default_rng(seed)
    samples = [rng.normal(size=(2, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
    results = Engine(graph, "float").run(samples)
    return [np.asarray(results[t]) for t in graph.outputs]
