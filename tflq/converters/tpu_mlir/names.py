"""What the tool calls a tensor: the ONNX value's name and the operator that writes it (docs/tpu_mlir.md, 8)."""

from __future__ import annotations

from tflq.converters.onnx import OnnxGraph

_SIX_GATE = "HardSigmoid"


def tool_names(network: OnnxGraph) -> dict[str, str]:
    """Return value -> `<value>_<op type>`; graph inputs keep their names.

    x * HardSigmoid(x) becomes one operator of the tool, HardSwish.
    """
    writers = network.producers
    names = {value.name: value.name for value in network.inputs}
    for value, node in writers.items():
        kinds = {writers[operand].op_type for operand in node.inputs if operand in writers}
        op_type = "HardSwish" if node.op_type == "Mul" and _SIX_GATE in kinds else node.op_type
        names[value] = f"{value}_{op_type}"
    return names


def tensor_names(network: OnnxGraph) -> dict[int, str]:
    """Return tensor of the model -> the tool's name of the value that holds it."""
    named = tool_names(network)
    return {t: named[value] for t, value in network.values.items() if value in named}
