"""TPU-MLIR's names of the values of an ONNX graph (docs/targets/tpu_mlir.md#files)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.converters.onnx import OnnxGraph, OnnxNode

_SIX_GATE = "HardSigmoid"
_GELU = ("Mul", "Mul", "Add", "Erf")
_UNNAMED = ("Ceil",)
"""Operators whose results TPU-MLIR calls as ONNX does."""


def tool_names(network: OnnxGraph) -> dict[str, str]:
    """Return value -> `<value>_<op type>`; graph inputs keep their names.

    x * HardSigmoid(x) becomes one operator of TPU-MLIR, HardSwish.
    """
    writers = network.producers
    names = {value.name: value.name for value in network.inputs}
    gelus = {last.outputs[0] for last in writers.values() if _ends_gelu(last, writers)}
    for value, node in writers.items():
        kinds = {writers[operand].op_type for operand in node.inputs if operand in writers}
        op_type = "HardSwish" if node.op_type == "Mul" and _SIX_GATE in kinds else node.op_type
        op_type = "GELU" if value in gelus else op_type
        names[value] = value if op_type in _UNNAMED else f"{value}_{op_type}"
    return names


def _ends_gelu(node: OnnxNode, writers: Mapping[str, OnnxNode], path: Sequence[str] = _GELU) -> bool:
    """Whether a node is the last of x * (1 + erf(x / sqrt 2)) * 0.5; x may come from an Add or Mul, too."""
    if node.op_type != path[0]:
        return False
    return len(path) == 1 or any(_ends_gelu(writers[v], writers, path[1:]) for v in node.inputs if v in writers)
