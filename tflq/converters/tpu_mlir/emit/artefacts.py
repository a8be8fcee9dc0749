"""All files of a quantised graph: what TPU-MLIR reads, and how to call it (docs/tpu_mlir.md, 8)."""

from __future__ import annotations

from tflq.converters.onnx import OnnxGraph, model_bytes
from tflq.converters.targets import model_name
from tflq.converters.tpu_mlir.calibration_table import format_calibration_table
from tflq.converters.tpu_mlir.emit.params import integers_json
from tflq.converters.tpu_mlir.passes.assembly import ARITHMETIC
from tflq.converters.tpu_mlir.passes.engines import INT8
from tflq.converters.tpu_mlir.quantisation_table import format_quantisation_table
from tflq.converters.tpu_mlir.quantise import TableOrigin, float_network
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Model
from tflq.interpreter import lower


def artefacts_of(graph: Graph, source: Model) -> dict[str, bytes]:
    """Return file name -> content: N.onnx, N_cali_table, N_qtable where layers leave INT8, N_build.sh, N_integers.json.

    Args:
        graph: of `quantise_graph`, lowered or not.
        source: the model that was quantised.

    Raises:
        MissingExtraError: the package `onnx` is not installed.
        UnsupportedError: the graph was not made by this target.
    """
    if not isinstance(graph.extra, TableOrigin):
        raise UnsupportedError("the graph has no calibration table: quantise it for tpu-mlir first")
    lowered = graph if all(n.params is not None for n in graph.nodes) else lower(graph, ARITHMETIC)
    _, network = float_network(source.main)
    name = model_name(source)
    modes = _modes(lowered)
    files = {
        f"{name}.onnx": model_bytes(network),
        f"{name}_cali_table": format_calibration_table(graph.extra.table).encode(),
        f"{name}_integers.json": integers_json(lowered),
        f"{name}_build.sh": _commands(name, network, _is_asymmetric(lowered), bool(modes)).encode(),
    }
    if modes:
        files[f"{name}_qtable"] = format_quantisation_table(modes).encode()
    return files


def _modes(graph: Graph) -> dict[str, str]:
    """Return layer -> mode for the layers that were asked to leave INT8."""
    asked = [n for n in graph.nodes if n.attributes.boolean("asked", False)]
    readers = {t: graph.nodes[i].outputs[0] for t, found in graph.consumers().items() for i in found}
    modes = {}
    for node in asked:
        name = graph.tensors[node.outputs[0]].name
        # a layer between two roundings writes a tensor of its own, which the second rounding reads
        own = graph.tensors[readers[node.outputs[0]]].name if name.endswith("_wide") else name
        modes[own] = node.attributes.text("engine", INT8)
    return modes


def _is_asymmetric(graph: Graph) -> bool:
    return any(node.attributes.boolean("asymmetric", False) for node in graph.nodes)


def _commands(name: str, network: OnnxGraph, asymmetric: bool, has_modes: bool) -> str:
    shapes = ",".join("[" + ",".join(map(str, value.shape)) + "]" for value in network.inputs)
    deploy = [f"model_deploy.py --mlir {name}.mlir --quantize INT8"]
    if asymmetric:
        deploy.append("--asymmetric")
    deploy.append(f"--calibration_table {name}_cali_table")
    if has_modes:
        deploy.append(f"--quantize_table {name}_qtable")
    deploy.append(f"--chip bm1684x --model {name}.bmodel")
    lines = [
        "#!/bin/sh",
        "# Run in this folder, with TPU-MLIR installed. Inputs are float32, images in the order [N, C, H, W].",
        "set -e",
        f"model_transform.py --model_name {name} --model_def {name}.onnx --input_shapes [{shapes}] --mlir {name}.mlir",
        " ".join(deploy),
    ]
    return "\n".join([*lines, ""])
