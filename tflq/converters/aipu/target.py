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
    FROM,
    INTEGERS,
    KNOWN,
    PROMOTIONS,
    RANGES,
    LayerOptions,
    layer_values,
    options_of,
    refuse_settings,
)
from tflq.converters.aipu.origin import Origin, uncalibrated
from tflq.converters.aipu.quantize import quantize_layers
from tflq.converters.aipu.quantized import is_quantized_graph
from tflq.converters.aipu.ranges import with_signed_inputs
from tflq.converters.aipu.sampled_ranges import add_sampled_ranges, apply_strategies, name_unsampled
from tflq.converters.aipu.stated_ranges import is_quantized_file, settle_ranges
from tflq.converters.aipu.tool_config import build_config_text, config_text, find_config
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, ranges_from_quantization, samples_of
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


_OTHER_GRAPH = (
    "from=integers: Compass's default for a quantized file, compat_quantized_model = true, hands TFLite's integers to "
    "its closed back end, whose results are not published; use from=ranges, and force_float_ir = true in [Parser]"
)


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
    is_quantized = is_quantized_file(graph)
    if is_quantized and settings.values[FROM] == INTEGERS:
        raise UnsupportedError(_OTHER_GRAPH)
    is_quantized = is_quantized and settings.values[FROM] == RANGES
    graph = graph if is_quantized else with_signed_inputs(graph)
    own, of_layers = apart(settings)
    values, whole = layer_values(graph, own), options_of(dict(settings.values))
    if isinstance(graph.extra, Origin):
        options = with_ir_rules(graph, values, settings.values, of_layers)
        graph = apply_strategies(graph, options, samples_of(given))
        return _floated(quantize_layers(graph, options, whole), graph, options)
    network = float_view(ranges_from_quantization(graph))
    problems = problems_of(network)
    if problems:
        raise UnsupportedError("; ".join(problems))
    source = graph if is_quantized else network
    layers = translate(source, graph.name or "model", bool(settings.values[PARSER_FAULTS]))
    layers = add_sampled_ranges(layers, samples_of(graph), is_quantized)
    assert isinstance(layers.extra, Origin)
    own_values = {layer: values[node] for layer, node in layers.extra.settings.items()}
    renamed = with_ir_rules(layers, own_values, settings.values, of_layers)
    settled = apply_strategies(settle_ranges(layers), renamed, samples_of(graph))
    quantized = quantize_layers(settled, renamed, whole)
    assert isinstance(quantized.extra, Origin)
    named = name_unsampled(layers) if is_quantized else {}
    quantized.extra = replace(quantized.extra, floats=layers, departures={**layers.extra.departures, **named})
    return _floated(quantized, network, renamed)


def _floated(quantized: Graph, network: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    floating = [name for name, one in options.items() if one.floating]
    return with_float_layers(quantized, network, floating) if floating else quantized


def _file_departures(graph: Graph, settings: Settings) -> dict[str, str]:
    """Return the mode of Compass that is modeled for a quantized file; no line for a float one."""
    if not is_quantized_file(graph) or settings.values[FROM] == INTEGERS:
        return {}
    return {"": _MODE if settings.values[FROM] == RANGES else _MODE_OF_SAMPLES}


_MODE = (
    "Compass's own default for this quantized file is another graph (compat_quantized_model = true); modeled are "
    "force_float_ir = true in [Parser] and calibration_strategy_for_activation = in_ir in [Optimizer]: put both into "
    "build.cfg"
)
_MODE_OF_SAMPLES = (
    "Compass's own default for this quantized file is another graph (compat_quantized_model = true); modeled is "
    "force_float_ir = true in [Parser], with ranges of the samples: put it into build.cfg"
)


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


def _tool_settings(settings: Settings, names: Sequence[str], file: str) -> str:
    """Return opt.cfg, or build.cfg if the file is called so, for the float IR among emitted files."""
    texts = [name.removesuffix(".txt") for name in names if name.endswith(".txt")]
    plain = [name for name in texts if f"{name}_o.txt" in names]
    if not plain:
        raise FormatError("opt.cfg is for a float IR, and that of a quantized one is not written")
    write = build_config_text if file.endswith("build.cfg") else config_text
    return write(settings, plain[0])


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
    file_departures=_file_departures,
    tool_settings=_tool_settings,
    read_settings=find_config,
    statistics=StatisticsOptions("mean", batch_size=1),
    estimate="no MACs a cycle, memory or bandwidth of a Zhouyi AIPU were found",
)
