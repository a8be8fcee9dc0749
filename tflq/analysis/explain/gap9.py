"""What is explained in GAP9's integers (docs/gap9.md)."""

from __future__ import annotations

from tflq.analysis.explain import gap9_filters, gap9_others
from tflq.analysis.explain.family import Families, families_of
from tflq.interpreter.kernels.gap9.linear import FilterParams
from tflq.interpreter.kernels.gap9.matrix_sum import SumParams
from tflq.interpreter.kernels.gap9.pooling import Reciprocal
from tflq.interpreter.kernels.gap9.quantize import QuantizeParams
from tflq.interpreter.kernels.gap9.relu import ReluParams
from tflq.interpreter.kernels.gap9.softmax import SoftmaxParams
from tflq.interpreter.layers.pooling import MaxPool

_family = families_of("gap9", "docs/gap9.md")
FAMILIES: Families = {
    FilterParams: _family("conv_2d, depthwise_conv_2d, fully_connected", gap9_filters.explain_linear, "4 to 6"),
    SumParams: _family("add, sub", gap9_others.explain_sum, "10"),
    Reciprocal: _family("average_pool_2d", gap9_others.explain_average_pool, "10"),
    MaxPool: _family("max_pool_2d", gap9_others.explain_max_pool, "10"),
    ReluParams: _family("relu, relu6", gap9_others.explain_relu, "1"),
    QuantizeParams: _family("quantize", gap9_others.explain_quantize, "9"),
    SoftmaxParams: _family("softmax of 8-bit input", gap9_others.explain_softmax, "11"),
}
