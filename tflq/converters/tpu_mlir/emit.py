"""All files of a quantized graph: what TPU-MLIR reads, how to call it, and the integers.

Source: docs/targets/tpu_mlir.md#files.
"""

from __future__ import annotations

from tflq.converters.onnx import OnnxGraph, model_bytes
from tflq.converters.targets import model_name
from tflq.converters.tpu_mlir.options import Deployment
from tflq.converters.tpu_mlir.passes.assembly import ARITHMETIC
from tflq.converters.tpu_mlir.passes.engines import INT8
from tflq.converters.tpu_mlir.quantize import TableOrigin, float_network
from tflq.converters.tpu_mlir.tables import format_calibration_table, format_quantization_table
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Graph, Model, Node, Tensor
from tflq.interpreter import lower
from tflq.interpreter.kernels.tpu_mlir.activations import LeakyReluParams, PReluParams
from tflq.interpreter.kernels.tpu_mlir.conversions import QuantizeParams
from tflq.interpreter.kernels.tpu_mlir.elementwise import MulParams, SumParams
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier
from tflq.interpreter.kernels.tpu_mlir.pooling import AverageParams
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer
from tflq.interpreter.layers.pooling import AveragePool, Mean
from tflq.quoting import json_text, shell_word
from tflq.schemas import Json


def artifacts_of(graph: Graph, source: Model) -> dict[str, bytes]:
    """Return file name -> content: N.onnx, N_cali_table, N_qtable where layers leave INT8, N_build.sh, N_integers.json.

    Args:
        graph: of `quantize_graph`, lowered or not.
        source: the model that was quantized.

    Raises:
        MissingExtraError: the package `onnx` is not installed.
        UnsupportedError: the graph was not made by this target.
    """
    if not isinstance(graph.extra, TableOrigin):
        raise UnsupportedError("the graph has no calibration table: quantize it for tpu-mlir first")
    lowered = graph if all(n.params is not None for n in graph.nodes) else lower(graph, ARITHMETIC)
    network = float_network(source.main).onnx
    name = model_name(source)
    modes = _modes(lowered)
    files = {
        f"{name}.onnx": model_bytes(network),
        f"{name}_cali_table": format_calibration_table(graph.extra.table).encode(),
        f"{name}_integers.json": integers_json(lowered),
        f"{name}_build.sh": _commands(name, network, graph.extra.deployment, bool(modes)).encode(),
    }
    if modes:
        files[f"{name}_qtable"] = format_quantization_table(modes).encode()
    return files


def _modes(graph: Graph) -> dict[str, str]:
    """Return layer -> mode for the layers that were asked to leave INT8."""
    asked = [n for n in graph.nodes if n.attributes.boolean("asked", False)]
    readers = {t: graph.nodes[i].outputs[0] for t, found in graph.consumers().items() for i in found}
    modes = {}
    for node, t in ((n, t) for n in asked for t in n.outputs):
        name = graph.tensors[t].name
        # a layer between two roundings writes a tensor of its own, which the second rounding reads
        own = graph.tensors[readers[t]].name if name.endswith("_wide") else name
        modes[own] = node.attributes.text("engine", INT8)
    return modes


def _commands(name: str, network: OnnxGraph, how: Deployment, has_modes: bool) -> str:
    name, shapes = shell_word(name), ",".join("[" + ",".join(map(str, value.shape)) + "]" for value in network.inputs)
    inputs = [shell_word(value.name) for value in network.inputs]
    transform = [
        f"model_transform.py --model_name {name} --model_def {name}.onnx",
        f"--input_shapes {shell_word(f'[{shapes}]')}",
        *(f"--{key} {shell_word(value)}" for key, value in how.preprocessing.items()),
    ]
    deploy = [f"model_deploy.py --mlir {name}.mlir --quantize INT8"]
    deploy += ["--asymmetric"] if how.asymmetric else []
    deploy.append(f"--calibration_table {name}_cali_table")
    deploy += [f"--quantize_table {name}_qtable"] if has_modes else []
    deploy += [f"--{option}" for option in ("quant_input", "quant_output") if getattr(how, option)]
    deploy.append(f"--chip {how.chip}")
    lines = [
        "#!/bin/sh",
        "# Run in this folder, with TPU-MLIR installed. Inputs are float32, images in the order [N, C, H, W].",
        f"# An argument, an .npz of samples named {', '.join(inputs)}: the tool also compares its own steps.",
        "set -e",
        f'{" ".join(transform)} ${{1:+--test_input "$1" --test_result {name}_top.npz}} --mlir {name}.mlir',
        f'{" ".join(deploy)} ${{1:+--test_input "$1" --test_reference {name}_top.npz --tolerance 0.8,0.5}} '
        f"--model {name}.bmodel",
    ]
    return "\n".join([*lines, ""])


def integers_of(node: Node) -> dict[str, Json]:
    """Return a lowered node's multiplier and rshift; pool_scale and pool_offset of an average in float32."""
    found = node.params
    if isinstance(found, (ConvolutionLayer, ProductLayer)) and isinstance(found.filter, FilterParams):
        return _rescale(found.filter.rescale)
    if isinstance(found, (AveragePool, Mean)) and isinstance(found.average, AverageParams):
        return _average(found.average)
    if isinstance(found, PReluParams):
        return {"rshift": found.shift} if found.slope.dtype.kind == "i" else {}
    if isinstance(found, (LeakyReluParams, MulParams, QuantizeParams, SumParams)) and found.rescale is not None:
        return _rescale(found.rescale)
    return {}


def integers_json(graph: Graph) -> bytes:
    """Return the file: for each tensor that a lowered graph computes its type, and the integers of its layer."""
    tensors = {
        graph.tensors[t].name: {**_type(graph.tensors[t]), **integers_of(node)}
        for node in graph.nodes
        for t in node.outputs
    }
    return (json_text({"tensors": tensors}) + "\n").encode()


def _rescale(found: Multiplier) -> dict[str, Json]:
    if found.multiplier.size == 1:
        return {"multiplier": int(found.multiplier[0]), "rshift": int(found.shift[0])}
    return {"multiplier": [int(m) for m in found.multiplier], "rshift": [int(s) for s in found.shift]}


def _average(found: AverageParams) -> dict[str, Json]:
    if found.rescale is not None:
        return _rescale(found.rescale)
    return {"pool_scale": float(found.scale), "pool_offset": float(found.offset)}


def _type(tensor: Tensor) -> dict[str, Json]:
    affine = tensor.quantization
    if not isinstance(affine, Affine):
        return {"type": tensor.dtype.value}
    return {"type": tensor.dtype.value, "scale": float(affine.scale[0]), "zero_point": int(affine.zero_point[0])}
