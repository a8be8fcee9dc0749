"""The target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tflq.converters.aipu.check import problems_of
from tflq.converters.aipu.descriptor import ARITHMETIC
from tflq.converters.aipu.emit import float_network_of, network_of
from tflq.converters.aipu.faults import PARSER_FAULTS, departures
from tflq.converters.aipu.floating import with_float_layers
from tflq.converters.aipu.ir_rules import apart, with_ir_rules
from tflq.converters.aipu.options import (
    KNOWN,
    PROMOTIONS,
    LayerOptions,
    layer_values,
    options_of,
    refuse_settings,
)
from tflq.converters.aipu.origin import Origin, uncalibrated
from tflq.converters.aipu.quantize import quantize_layers
from tflq.converters.aipu.quantized import is_quantized_graph
from tflq.converters.aipu.ranges import with_signed_inputs
from tflq.converters.aipu.tool_config import config_text, find_config
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import ranges_from_quantization
from tflq.converters.precision import probed_plan
from tflq.converters.settings import Settings
from tflq.converters.targets import Artifacts, Target
from tflq.errors import FormatError, UnsupportedError
from tflq.graph import Array, Graph, Model, Tensor, float_view
from tflq.interpreter.kernels.aipu.scales import encode
from tflq.quoting import file_name
from tflq.schemas.aipu import specification, write_network

_WIDTHS = tuple((bits, {"activation_bits": bits, "weight_bits": bits}) for bits in (16, 8))
"""8 or 16 bits, for weights and output together."""


def _check(given: Graph, settings: Settings) -> tuple[str, ...]:
    graph = uncalibrated(given)
    layer_values(graph, apart(settings)[0])
    if isinstance(graph.extra, Origin):
        return ()
    return problems_of(float_view(ranges_from_quantization(graph)))


def quantize_graph(given: Graph, settings: Settings) -> Graph:
    """Return Zhouyi's graph.

    Args:
        given: a TFLite graph, quantized or float with ranges; or Compass's own layers with ranges. The graph of a
            quantized IR comes back as it is.
        settings: complete.

    Raises:
        UnsupportedError: what `check` lists, all at once; tensors without a range.
        OptionError: a layer pattern that matches nothing; settings for a graph that is quantized already.
    """
    graph = uncalibrated(given)
    if is_quantized_graph(graph):
        refuse_settings(settings)
        return graph
    graph = with_signed_inputs(graph)
    own, of_layers = apart(settings)
    values, whole = layer_values(graph, own), options_of(dict(settings.values))
    if isinstance(graph.extra, Origin):
        options = with_ir_rules(graph, values, settings.values, of_layers)
        return _floated(quantize_layers(graph, options, whole), graph, options)
    network = float_view(ranges_from_quantization(graph))
    problems = problems_of(network)
    if problems:
        raise UnsupportedError("; ".join(problems))
    layers = translate(network, graph.name or "model", bool(settings.values[PARSER_FAULTS]))
    assert isinstance(layers.extra, Origin)
    named = {layer: values[node] for layer, node in layers.extra.settings.items()}
    renamed = with_ir_rules(layers, named, settings.values, of_layers)
    return _floated(quantize_layers(layers, renamed, whole), network, renamed)


def _floated(quantized: Graph, network: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    floating = [name for name, one in options.items() if one.floating]
    return with_float_layers(quantized, network, floating) if floating else quantized


def _encode(real: Array, tensor: Tensor) -> Array:
    """Return codes: clamp(RNE(f32(s * x) - zp))."""
    return encode(np.asarray(real), tensor.affine).astype(tensor.dtype.storage)


def artifacts_of(graph: Graph, source: Model) -> Artifacts:
    """Return file name -> content: the Compass IR NAME_o.txt and .bin, quantized, and NAME.txt and .bin, float.

    The float IR states the ranges as layer_top_range, so that Compass (calibration `in_ir`) and tflq make the same
    quantized one of it. The graph of a quantized IR gives no float one.

    Raises:
        UnsupportedError: the graph was not made by this target.
    """
    network = network_of(graph)
    plain = _plain_name(source.source) or network.name
    networks = {f"{plain}_o": replace(network, header={**network.header, "model_name": plain})}
    if isinstance(graph.extra, Origin) and graph.extra.floats is not None:
        networks[plain] = float_network_of(graph.extra.floats, plain)
    files: dict[str, bytes] = {}
    for name, written in networks.items():
        text, binary = write_network(written)
        files.update({f"{name}.txt": text.encode(), f"{name}.bin": binary})
    return files


def _tool_settings(settings: Settings, names: Sequence[str]) -> str:
    """Return opt.cfg for the float IR among emitted files."""
    texts = [name.removesuffix(".txt") for name in names if name.endswith(".txt")]
    plain = [name for name in texts if f"{name}_o.txt" in names]
    if not plain:
        raise FormatError("opt.cfg is for a float IR, and that of a quantized one is not written")
    return config_text(settings, plain[0])


def _plain_name(path: str) -> str:
    """Return the name of a file without folder, ending and the mark of a quantized IR, as a name for files."""
    name = path.rpartition("/")[2].rpartition("\\")[2]
    for ending in (".tflite", ".txt", "_o"):
        name = name.removesuffix(ending)
    return file_name(name)


AIPU = Target(
    name="aipu",
    summary="Arm China Zhouyi by Compass: 8 or 16 bits, symmetric or asymmetric",
    arithmetic=ARITHMETIC,
    specification=specification(),
    settings=KNOWN,
    check=_check,
    quantize=quantize_graph,
    encode=_encode,
    emit=artifacts_of,
    precision_plan=partial(probed_plan, quantize_graph, offered=_WIDTHS, counted="weights, biases and activations"),
    promotions=PROMOTIONS,
    tool="Compass",
    departures=departures,
    tool_settings=_tool_settings,
    read_settings=find_config,
    estimate="no MACs a cycle, memory or bandwidth of a Zhouyi AIPU were found",
)
