"""The files of the target `tflm`: the .tflite file, and a header with its operators and the plan of its arena."""

from __future__ import annotations

import re

from tflq.converters.targets import Artifacts, model_name
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflm.kernels import find_method
from tflq.graph import Graph, Model
from tflq.graph.arena import arena_of

HEADER = """\
// Operators and memory of model.tflite, for TensorFlow Lite Micro. Written by tflq.
#ifndef {guard}
#define {guard}

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

// Bytes of all activations by tflq's plan. The arena of MicroInterpreter also holds its tensors, nodes and the kernels'
// buffers, which depend on the platform: MicroInterpreter::arena_used_bytes() returns the sum.
constexpr int k{name}ActivationBytes = {plan};

using {name}Resolver = tflite::MicroMutableOpResolver<{count}>;

inline TfLiteStatus Register{name}Operators({name}Resolver& resolver) {{
{lines}
  return kTfLiteOk;
}}

#endif  // {guard}
"""


def list_methods(graph: Graph) -> list[str]:
    """Return the methods of MicroMutableOpResolver that the graph needs, sorted."""
    return sorted({find_method(node) for node in graph.nodes})


def artifacts_of(graph: Graph, source: Model) -> Artifacts:
    """Return the .tflite file of a rewritten graph, and the header."""
    files = TFLITE.emit(graph, source)
    methods = list_methods(graph)
    stem = model_name(source)
    name = "".join(word.capitalize() for word in re.findall("[A-Za-z0-9]+", stem)) or "Model"
    name = name if name[0].isalpha() else f"Model{name}"
    header = HEADER.format(
        guard=f"{name.upper()}_OPERATORS_H_",
        name=name,
        plan=arena_of(graph).planned_bytes,
        count=len(methods),
        lines="\n".join(f"  TF_LITE_ENSURE_STATUS(resolver.{method}());" for method in methods),
    )
    return {**files, f"{stem}_operators.h": header.encode()}
