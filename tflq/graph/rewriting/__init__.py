"""Rewriting: a graph under change, patterns of nodes, and passes with a record of their changes.

Source: docs/internals/rewriting.md.
"""

from __future__ import annotations

from tflq.graph.rewriting.editor import GraphEditor
from tflq.graph.rewriting.passes import (
    Change,
    ExtraPass,
    Pass,
    graph_pass,
    pause_trace,
    rewrite_graph,
    run_passes,
    select_changes,
    trace_passes,
)
from tflq.graph.rewriting.pattern import (
    ANY,
    Constant,
    Match,
    Op,
    Value,
    find_matches,
    fused_activation,
    is_near,
    match,
    one_of,
    op,
    replace_root,
    rewrite,
)

__all__ = [
    "ANY",
    "Change",
    "Constant",
    "ExtraPass",
    "GraphEditor",
    "Match",
    "Op",
    "Pass",
    "Value",
    "find_matches",
    "fused_activation",
    "graph_pass",
    "is_near",
    "match",
    "one_of",
    "op",
    "pause_trace",
    "replace_root",
    "rewrite",
    "rewrite_graph",
    "run_passes",
    "select_changes",
    "trace_passes",
]
