"""The small graphs of cases/tpu_mlir_more as tflq graphs, and TPU-MLIR's lowered tensors beside tflq's.

python -m tests.support.tpu_mlir_cases compares all of them, as the suite does.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.support.data import data_files, data_path
from tests.support.onnx_graph import OnnxReader
from tests.support.tpu_mlir_rules import CASE_RULES
from tflq.converters.onnx import translate
from tflq.converters.settings import parse_settings, read_options
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.adapt import for_the_tool
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.passes.moves import see_network
from tflq.converters.tpu_mlir.quantize import quantize_network
from tflq.converters.tpu_mlir.tables import parse_calibration_table
from tflq.errors import TflqError
from tflq.graph import Array, DType, Graph
from tflq.interpreter import Engine, lower


@dataclass(frozen=True)
class Comparison:
    """One case in one mode: how many tensors of the tool had a counterpart, and what differed."""

    compared: int
    integers: int
    problems: list[str]


FUSED_ELSEWHERE = {
    "avgpool_pad": "its padding is none of TFLite's",
    "avgpool_pad_incl": "its padding is none of TFLite's",
    "concat_relu": "tflq writes the rectifier in front, the table has it behind",
    "hswish_pattern": "five nodes; TFLite has HARD_SWISH",
    "layernorm_pattern": "nine nodes in another order than TFLite's converter has",
    "expand": "tflq writes transposes around it; alone TPU-MLIR leaves it in reals",
    "global_max_pool": "tflq writes a MaxPool, whose range is that of its input",
    "pow2": "tflq writes a product",
}
"""Cases whose tensors tflq calls otherwise, because it writes the network otherwise."""

NOT_READ = {
    "batchnorm", "clip_0_4", "conv1d", "conv3d", "conv_bn_relu", "deconv_dw", "deconv_k3s2", "depthtospace_crd",
    "elu05", "elu_noalpha", "erf", "gather_one", "gelu_erf", "gru", "hardsigmoid", "instancenorm", "layernorm", "lstm",
    "matmul_4d", "matmul_4d_u8", "matmul_4d_u8u8", "matmul_const3d", "matmul_const3d_bias", "matmul_const_batch",
    "matmul_qkt", "maxpool_pad", "mish", "pad_edge", "pad_reflect", "reciprocal", "reducel2_1", "reshape_conv",
    "resize_nearest_hp", "rsqrt", "softmax4d_ax2", "softmax4d_axm1", "softplus", "softsign", "transpose_only",
    "where_greater",
}  # fmt: skip
"""Cases with an ONNX operator that tests/support/tpu_mlir_rules.py does not write as one of TFLite's."""


WRITTEN_AS = (
    ("_Softmax__softmax", "_Softmax"), ("_PRelu", "_LeakyRelu"), ("_GlobalMaxPool", "_MaxPool"),

)  # fmt: skip
"""The end of a name in TPU-MLIR, and in what tflq writes."""


def case_names() -> list[str]:
    """Every case that can be read; none where TFLQ_DATA is not set."""
    names = [path.stem for path in data_files("cases", "tpu_mlir_more", pattern="*.onnx")]
    return [name for name in names if name not in FUSED_ELSEWHERE and name not in NOT_READ]


def graph_of(name: str) -> Graph:
    """The float graph of a case; KeyError where no operator of TFLite is one of it, AssertionError: odd pads."""
    import onnx

    reader = OnnxReader(onnx.load(data_path("cases", "tpu_mlir_more") / f"{name}.onnx"), CASE_RULES)
    return reader.builder.build([reader.tensors[output] for output in reader.outputs])


def compared(name: str, mode: str) -> Comparison:
    """Quantize and run a case as the tool did."""
    folder = data_path("cases", "tpu_mlir_more")
    network = expand(graph_of(name))
    layers = _modes(network, folder / f"{name}.qtable")
    settings = parse_settings(TPU_MLIR.settings, [f"asymmetric={str(mode == 'asym').lower()}"], layers)
    table = parse_calibration_table((folder / f"{name}.table").read_text(encoding="utf-8"))
    options = read_options(LayerOptions, network, settings)
    seen = see_network(network, for_the_tool(translate(network)))
    graph = lower(quantize_network(seen, table, options), "tpu_mlir")
    with np.load(folder / f"{name}_{mode}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    inputs = [arrays[f"in/{graph.tensors[t].name}"] for t in graph.inputs]
    keep = [t for node in graph.nodes for t in node.outputs]
    feeds = [x.transpose(0, 1, 3, 4, 2) if x.ndim == 5 else x for x in inputs]
    values = Engine(graph).run([np.ascontiguousarray(x) for x in feeds], keep)
    ours = {graph.tensors[t].name: t for t in keep}
    described = {
        output["name"]: output
        for layer in json.loads((folder / f"{name}_{mode}.json").read_text(encoding="utf-8"))
        for output in layer["outputs"]
    }
    counts, problems = [0, 0], []
    for key, theirs in arrays.items():
        t = _counterpart(key.removeprefix("tensor/"), ours) if key.startswith("tensor/") else None
        if t is None:
            continue
        tensor, stated = graph.tensors[t], described[key.removeprefix("tensor/")]
        counts[0] += 1
        counts[1] += tensor.dtype.is_integer
        if "scale" in stated and not (
            np.isclose(float(tensor.affine.scale[0]), stated["scale"], rtol=1e-6, atol=0)
            and int(tensor.affine.zero_point[0]) == stated["zero_point"]
        ):
            problems.append(f"{key}: type {tensor.quantization}, the tool's {stated}")
        elif not _is_equal(values[t], theirs, tensor.dtype):
            problems.append(f"{key}: values")
    return Comparison(counts[0], counts[1], problems)


def _counterpart(name: str, ours: dict[str, int]) -> int | None:
    """Return our tensor of a name, perhaps by the operator that tflq writes; None where it is inside of one."""
    return next((ours[n] for n in (name, *(name.replace(*pair) for pair in WRITTEN_AS)) if n in ours), None)


def _modes(graph: Graph, path: Path) -> list[str]:
    """The layers of a quantization table as rules; a rectifier's convolution, too."""
    if not path.exists():
        return []
    written, rules = graph.producers(), []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, mode = line.split()
        (node,) = (n for n in graph.nodes if graph.tensors[n.outputs[0]].name == name.rsplit("_", 1)[0])
        rules.append(f"{node.name}:mode={mode}")
        if node.operator == "relu" and node.inputs[0] in written:
            rules.append(f"{graph.nodes[written[node.inputs[0]]].name}:mode={mode}")
    return rules


def main() -> int:
    """Compare every case that can be read; 1 where something differs."""
    counts = {"equal": 0, "differs": 0}
    for name in case_names():
        for mode in ("sym", "asym"):
            try:
                found = compared(name, mode)
            except TflqError as error:
                found = Comparison(0, 0, [str(error)])
            counts["equal" if found.compared and not found.problems else "differs"] += 1
            for problem in found.problems:
                sys.stdout.write(f"{name} {mode} {problem}\n")
    counts["not an operator of TFLite"] = 2 * len(NOT_READ)
    sys.stdout.write(", ".join(f"{count} {what}" for what, count in counts.items()) + "\n")
    return int(counts["differs"] > 0)


def _is_equal(mine: Array, theirs: Array, dtype: DType) -> bool:
    orders = [mine.reshape(theirs.shape)]
    if mine.ndim == 5:
        orders.append(mine.transpose(0, 1, 4, 2, 3).reshape(theirs.shape))
    if dtype.is_integer:  # of -128 the tool's simulator makes 128, which int8 has not
        inside = np.clip(theirs.astype(np.int64), dtype.minimum, dtype.maximum)
        return any(np.array_equal(order, inside) for order in orders)
    reals = theirs.astype(np.float64)
    # float16 to one unit in the last place, in a few elements: the order of sums
    return any(np.mean(order.astype(np.float64) != reals) <= 0.002 for order in orders) or any(
        theirs.dtype == np.float32 and np.allclose(order, reals, rtol=1e-5, atol=1e-5 * np.abs(reals).max())
        for order in orders
    )


if __name__ == "__main__":
    sys.exit(main())
