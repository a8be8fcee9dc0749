"""Ranges from the samples of a calibration, for layers without a range of the model or the file.

The Optimizer calibrates every layer of its graph. Most layers write a tensor of the model, or its values in another
shape, with the range of that tensor. The Parser makes other layers anew: a copy of a mean, a root of a sum. It loses
ranges of a quantized file. The samples then run through the layers in float. With calibration `in_ir` the Optimizer
takes the extrema of all samples, for any strategy; without samples it runs zeros.

Source: Compass Optimizer, optmaster.py, statistic; the int8 files of the zoo, seed 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflq.converters.aipu.operators import LAYERS
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.stated_ranges import SAMPLED, is_stated, with_samples
from tflq.converters.calibration import CalibrationSamples, calibrate
from tflq.errors import OptionError, TflqError
from tflq.graph import Graph, Tensor
from tflq.interpreter.kernels.aipu.real import NAME as REAL


def in_float(layers: Graph) -> Graph:
    """Return layers of a float IR with the arithmetic that runs them."""
    return replace(layers, nodes=[replace(node, arithmetic=REAL) for node in layers.nodes])


def add_sampled_ranges(layers: Graph, samples: CalibrationSamples | None, is_quantized: bool) -> Graph:
    """Return the layers with ranges of samples for the tensors without a stated range.

    If the calibration ran more samples than it keeps, the ranges of the model's tensors stay.

    Args:
        layers: Float graph of `translate`.
        samples: Samples of a calibration; None leaves the layers unchanged.
        is_quantized: True for layers of a quantized file, with the ranges that the Parser states.
    """
    written = [t for node in layers.nodes for t in (*node.outputs, *(node.intermediates or ()))]
    missing = [t for t in written if not is_stated(layers.tensors[t]) and not layers.tensors[t].dtype.is_integer]
    if samples is None or not samples.inputs or not missing:
        return layers
    options = replace(samples.options, strategy="extrema") if is_quantized else samples.options
    try:
        measured = calibrate(in_float(layers), list(samples.inputs), options)
    except TflqError:
        return layers
    is_whole = samples.count <= len(samples.inputs[0])
    result = layers.copy()
    for t in missing:
        old, sampled = layers.tensors[t], measured.tensors[t].range
        if sampled is not None and (is_whole or old.range is None):
            result.tensors[t] = replace(old, range=sampled if old.range is None else with_samples(old.range, sampled))
    return result


def name_unsampled(layers: Graph) -> dict[str, str]:
    """Return the layers of a quantized file without a range of the Parser or of samples, in words.

    Also named: a layer of which the Parser states some ranges and not others.
    """
    ranged = [node for node in layers.nodes if LAYERS[node.operator].signed is not None]
    unsampled = [node.name for node in ranged if any(_is_unsampled(layers.tensors[t]) for t in node.outputs)]
    partly = [node.name for node in layers.nodes if len({is_stated(layers.tensors[t]) for t in node.outputs}) > 1]
    differences = dict.fromkeys(partly, _PARTLY)
    if unsampled:
        some = ", ".join(f"'{name}'" for name in unsampled[:3])
        more = f" and {len(unsampled) - 3} more" if len(unsampled) > 3 else ""
        differences[""] = (
            f"the file states no range for {some}{more}: Compass calibrates them from samples, tflq takes the range of "
            "the same values in the file; give the samples with --calibrate"
        )
    return differences


_PARTLY = "the Parser writes NONE for the range of an output that no layer reads; its Optimizer does not read the IR"


def _is_unsampled(tensor: Tensor) -> bool:
    return tensor.range is not None and not is_stated(tensor) and SAMPLED not in tensor.range.statistics


def apply_strategies(layers: Graph, options: Mapping[str, LayerOptions], samples: CalibrationSamples | None) -> Graph:
    """Return the layers with ranges of the outputs that have a strategy of their own.

    Args:
        layers: Float graph with ranges.
        options: Options of each layer, by name.
        samples: Samples of the calibration.

    Raises:
        OptionError: An unknown strategy; no samples, or more than the calibration keeps.
    """
    chosen = {name: one.strategy for name, one in options.items() if one.strategy}
    if not chosen:
        return layers
    if samples is None or not samples.inputs or samples.count > len(samples.inputs[0]):
        kept = 0 if samples is None or not samples.inputs else len(samples.inputs[0])
        raise OptionError(
            f"layer '{next(iter(chosen))}': a separate strategy needs samples, at most {kept or 100}: --calibrate FILE"
        )
    result = layers.copy()
    real = in_float(layers)
    for strategy in dict.fromkeys(chosen.values()):
        measured = calibrate(real, list(samples.inputs), replace(samples.options, strategy=strategy))
        for node in layers.nodes:
            for t in node.outputs if chosen.get(node.name) == strategy else ():
                result.tensors[t] = replace(layers.tensors[t], range=measured.tensors[t].range)
    return result
