"""Models of one operator for tests of the oracle, written with TFLite's own generated schema code."""

from __future__ import annotations

import importlib
from typing import Any

import flatbuffers
import numpy as np
import pytest


def tflite_schema() -> Any:
    """The object API that both packages ship."""
    for name in ("ai_edge_litert.schema_py_generated", "tensorflow.lite.python.schema_py_generated"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    pytest.skip("neither ai-edge-litert nor tensorflow is installed: no schema to write test models with")


def one_operator(operator: str, tensors: list[dict], inputs: list[int], outputs: list[int], options=None) -> bytes:
    """Build a model of one operator.

    A tensor is {shape, type, data?, scale?, zero_point?, variable?}, the first one also has the operator's version?;
    the operator takes all tensors but its outputs, the model those in `inputs`. `options` is (table, {field: value}).
    """
    schema = tflite_schema()
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, operator)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = tensors[0].get("version", 1)
    node = schema.OperatorT()
    node.inputs = [index for index in range(len(tensors)) if index not in outputs]
    node.outputs = outputs
    if options:
        table, fields = options
        node.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        node.builtinOptions = getattr(schema, table + "T")()
        for key, value in fields.items():
            setattr(node.builtinOptions, key, value)
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
    model.buffers = [schema.BufferT()]
    graph.inputs, graph.outputs, graph.operators = inputs, outputs, [node]
    graph.tensors = [_tensor(schema, model, number, tensor) for number, tensor in enumerate(tensors)]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(schema: Any, model: Any, number: int, fields: dict) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape = f"t{number}", list(fields["shape"])
    tensor.type = getattr(schema.TensorType, fields["type"])
    tensor.isVariable = fields.get("variable", False)
    if "scale" in fields:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = [fields["scale"]]
        tensor.quantization.zeroPoint = [fields.get("zero_point", 0)]
    if "data" in fields:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.asarray(fields["data"]).tobytes(), np.uint8)
        tensor.buffer = len(model.buffers)
        model.buffers.append(buffer)
    return tensor


def add(output_scale: float = 1.0) -> bytes:
    """int8 ADD of two [1, 3]; an output scale that is tiny against the inputs' fails a CHECK in TFLite: SIGABRT."""
    pair = [{"shape": [1, 3], "type": "INT8", "scale": 1.0} for _ in range(2)]
    return one_operator(
        "ADD", [*pair, {"shape": [1, 3], "type": "INT8", "scale": output_scale}], [0, 1], [2], ("AddOptions", {})
    )


def running_sum() -> bytes:
    """A recurrent layer of one unit and weights 1: its state, a variable tensor, adds up the inputs."""
    one = np.ones((1, 1), np.float32)
    tensors = [
        {"shape": [1, 1, 1], "type": "FLOAT32"},
        {"shape": [1, 1], "type": "FLOAT32", "data": one},
        {"shape": [1, 1], "type": "FLOAT32", "data": one},
        {"shape": [1], "type": "FLOAT32", "data": np.zeros(1, np.float32)},
        {"shape": [1, 1], "type": "FLOAT32", "variable": True},
        {"shape": [1, 1, 1], "type": "FLOAT32"},
    ]
    return one_operator("UNIDIRECTIONAL_SEQUENCE_RNN", tensors, [0], [5], ("SequenceRNNOptions", {}))


def random_vector() -> bytes:
    """Seeded random numbers, as many as the input says."""
    tensors = [{"shape": [1], "type": "INT32"}, {"shape": [1], "type": "FLOAT32"}]
    return one_operator("RANDOM_UNIFORM", tensors, [0], [1], ("RandomOptions", {"seed": 7, "seed2": 9}))


def pick_string() -> bytes:
    """Strings [3] and an index [1] in, one string out."""
    tensors = [
        {"shape": [3], "type": "STRING", "version": 2},
        {"shape": [1], "type": "INT32"},
        {"shape": [1], "type": "STRING"},
    ]
    return one_operator("GATHER", tensors, [0, 1], [2], ("GatherOptions", {}))


def int4_weights() -> bytes:
    """FULLY_CONNECTED [1, 2] by int4 [2, 2], packed low nibble first: rows (1, -2), (3, 7)."""
    tensors = [
        {"shape": [1, 2], "type": "INT8", "scale": 1.0, "version": 7},
        {"shape": [2, 2], "type": "INT4", "scale": 1.0, "data": np.array([0xE1, 0x73], np.uint8)},
        {"shape": [1, 2], "type": "INT8", "scale": 1.0},
    ]
    return one_operator("FULLY_CONNECTED", tensors, [0], [2], ("FullyConnectedOptions", {}))
