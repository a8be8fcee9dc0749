"""Target `tflm`: the file that TensorFlow Lite Micro runs as TFLite runs the given one (docs/targets/tflm.md)."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.passes.requirements import collect_problems, refuse
from tflq.converters.settings import Settings, parse_settings, read_options, settings_of
from tflq.converters.targets import Target
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflm.departures import find_departures
from tflq.converters.tflm.emit import artifacts_of
from tflq.converters.tflm.kernels import TYPES, describe_problem
from tflq.converters.tflm.options import KEEP, TflmOptions
from tflq.converters.tflm.rewrite import ARITHMETIC, rewrite_for_tflm
from tflq.graph import Graph, validate
from tflq.graph.rewriting import pause_trace

__all__ = ["TFLM"]


def _rewrite(graph: Graph, settings: Settings) -> Graph:
    options = read_options(TflmOptions, graph, settings).whole
    if options.kind != KEEP:
        integers = TFLITE.quantize(graph, parse_settings(TFLITE.settings, [f"type={options.kind}"]))
        graph = replace(integers, nodes=[replace(node, arithmetic=None) for node in integers.nodes])
    return rewrite_for_tflm(graph, options)


def check_graph(graph: Graph, settings: Settings) -> tuple[str, ...]:
    """Return one line for each operator that has no kernel after all rewrites."""
    with pause_trace():
        result = _rewrite(graph, settings)
    return collect_problems(result, lambda _, node: describe_problem(result, node))


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the rewritten graph.

    Raises:
        UnsupportedError: Operators without a kernel, all at once.
    """
    result = _rewrite(graph, settings)
    refuse(collect_problems(result, lambda _, node: describe_problem(result, node)))
    validate(result, "rewritten graph")
    return result


TFLM = Target(
    name="tflm",
    summary="TensorFlow Lite Micro: the file's own integers, rewritten for its kernels",
    arithmetic=ARITHMETIC,
    specification={
        "documentation": "docs/targets/tflm.md",
        "operators": {name: sorted(dtype.value for dtype in types) for name, types in sorted(TYPES.items())},
    },
    settings=settings_of(TflmOptions),
    check=check_graph,
    quantize=quantize_graph,
    encode=TFLITE.encode,
    emit=artifacts_of,
    departures=find_departures,
    estimate="cycles depend on the processor and its kernels: measure them on the device",
)
