"""The files of the target: exponents and shifts as JSON, weights and biases as a C header."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from tflq.converters.targets import model_name
from tflq.graph import Graph, Model, Node
from tflq.interpreter import lower
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer
from tflq_power_of_two.kernels import NAME, Filter, exponent_of


def files_of(graph: Graph, source: Model) -> dict[str, bytes]:
    """Return file name -> content: MODEL_exponents.json and MODEL_constants.h."""
    lowered = graph if all(node.params is not None for node in graph.nodes) else lower(graph, NAME)
    name = model_name(source)
    layers = [
        {
            "layer": node.name,
            "operator": node.operator,
            "output": exponent_of(lowered.tensors[node.outputs[0]]),
            **_shift_of(node),
        }
        for node in lowered.nodes
    ]
    text = json.dumps({"inputs": [exponent_of(lowered.tensors[t]) for t in lowered.inputs], "layers": layers}, indent=1)
    header = "\n".join(("#include <stdint.h>", *_arrays(lowered), ""))
    return {f"{name}_exponents.json": f"{text}\n".encode(), f"{name}_constants.h": header.encode()}


def _shift_of(node: Node) -> dict[str, int]:
    if not isinstance(node.params, (ConvolutionLayer, ProductLayer)):
        return {}
    assert isinstance(node.params.filter, Filter)
    return {"shift": node.params.filter.shift}


def _arrays(graph: Graph) -> Iterator[str]:
    for number, node in enumerate(graph.nodes):
        if isinstance(node.params, (ConvolutionLayer, ProductLayer)):
            found = node.params.filter
            assert isinstance(found, Filter)
            yield _array(f"weights_{number}", "int8_t", found.weights)
            yield _array(f"bias_{number}", "int32_t", found.bias)


def _array(name: str, kind: str, values: np.ndarray) -> str:
    return f"static const {kind} {name}[{values.size}] = {{{', '.join(map(str, values.reshape(-1).tolist()))}}};"
