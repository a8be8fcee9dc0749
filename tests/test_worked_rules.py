"""The worked examples on the pages of rules are what the code computes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path
from tflq.converters.gap9.passes.columns import vendor_columns
from tflq.converters.openvino.passes.ranges import nudged
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.graph import Affine, DType
from tflq.interpreter.kernels.aipu.multiplier import find_multiplier as find_aipu_multiplier
from tflq.interpreter.kernels.gap9.mul_bias import mul_bias, multiplier_bits
from tflq.interpreter.kernels.nnie.logarithm import dequantize, quantize, scheme_of, z_of
from tflq.interpreter.kernels.openvino.levels import affine_of
from tflq.interpreter.kernels.tflite.pools import Quotient
from tflq.interpreter.kernels.tpu_mlir.multiplier import find_multiplier as find_tpu_multiplier


def example_of_gap9_filters() -> list[str]:
    bits = multiplier_bits(9, [3013])
    made = mul_bias([0.0049997], bits)
    return [f"avail = 31 - max(4 + 14, 12) = {bits[0]}", f"so M = {made.multiplier[0]}, N = {made.shift[0]}"]


def example_of_gap9_types() -> list[str]:
    target = find_target("gap9-ne16")
    graph = target.quantize(settled_graph(read_model(demo_model_path()).main), parse_settings(target.settings))
    tensors = [graph.inputs[0], next(node for node in graph.nodes if node.name == "FULLY_CONNECTED_0_8").outputs[0]]
    types = [graph.tensors[t].quantization for t in tensors]
    image, logits = (affine for affine in types if isinstance(affine, Affine))
    assert np.isclose(image.scale[0], 1 / 255)
    return [
        f"| {'int' if image.signed else 'uint'}8, S = 1/255, Z = {image.zero_point[0]} |",
        f"| {'int' if logits.signed else 'uint'}8, S = {logits.scale[0]:g}, Z = {logits.zero_point[0]} |",
    ]


def example_of_gap9_columns() -> list[str]:
    order = vendor_columns((1, 2, 1, 3), True, True)
    return [f"columns 0 to 5 are columns {', '.join(map(str, order))} of the file"]


def example_of_aipu_values() -> list[str]:
    made = find_aipu_multiplier(0.0123, 8)
    m, n = int(np.ravel(made.m)[0]), int(np.ravel(made.n)[0])
    return [f"so N = {n};", f"= {m}, and {m} / 2^{n} = {m / (1 << n):.6f}"]


def example_of_nnie() -> list[str]:
    scheme = scheme_of(8)
    z = z_of(3.0, scheme)
    sign, codes = quantize(np.array([1.0, 3.0], np.float32), z, scheme)
    one, three = dequantize(sign, codes, z, scheme)
    return [f"so z = {z}.", f"= {codes[0]}, which denotes 2^(({codes[0]} - 102)/16) = {one:g}.", f"= {three:.3f}."]


def example_of_openvino() -> list[str]:
    rule = nudged(np.array([-1.0]), np.array([2.6]), 256, symmetric=False)
    affine = affine_of(rule)
    assert affine is not None
    low, high = float(rule.input_low[0]), float(rule.input_high[0])
    return [f"= {low:.5f}, ih = 184 S = {high:.5f};", f"Z = 71 - 128 = {affine.zero_point[0]}."]


def example_of_tpu_mlir() -> list[str]:
    made = find_tpu_multiplier(0.3, 8, 0)
    return [f"{made.multiplier[0]} >> {made.shift[0]} wins"]


def example_of_tflite() -> list[str]:
    up, down = Quotient(-128, 127, DType.INT8).apply(np.array([10, -10]), 4)
    return [f"trunc((10 + 2) / 4) = {up};", f"trunc((-10 - 2) / 4) = {down}."]


EXAMPLES = {
    "rules/gap9/filters.md": example_of_gap9_filters,
    "rules/gap9/types.md": example_of_gap9_types,
    "differences/gap9_columns.md": example_of_gap9_columns,
    "rules/aipu/values.md": example_of_aipu_values,
    "rules/nnie.md": example_of_nnie,
    "rules/openvino.md": example_of_openvino,
    "rules/tpu_mlir.md": example_of_tpu_mlir,
    "rules/tflite/index.md": example_of_tflite,
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_example_is_what_the_code_computes(page: str) -> None:
    compute: Callable[[], list[str]] = EXAMPLES[page]
    text = re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [part for part in compute() if part not in text] == []
