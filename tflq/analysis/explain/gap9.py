"""What is explained in GAP9's integers (docs/gap9.md)."""

from __future__ import annotations

from tflq.analysis.explain import gap9_filters, gap9_others
from tflq.analysis.explain.family import Families, families_of
from tflq.interpreter.kernels.gap9.average_pool_2d import AveragePoolIntegers
from tflq.interpreter.kernels.gap9.conv_2d import ConvolutionIntegers
from tflq.interpreter.kernels.gap9.fully_connected import ProductIntegers
from tflq.interpreter.kernels.gap9.matrix_sum import SumIntegers
from tflq.interpreter.kernels.gap9.max_pool_2d import MaxPoolIntegers
from tflq.interpreter.kernels.gap9.quantize import QuantizeIntegers
from tflq.interpreter.kernels.gap9.relu import ReluIntegers
from tflq.interpreter.kernels.gap9.softmax import SoftmaxIntegers

_family = families_of("gap9", "docs/gap9.md")
FAMILIES: Families = {
    ConvolutionIntegers: _family("conv_2d, depthwise_conv_2d", gap9_filters.explain_convolution, "4 to 6"),
    ProductIntegers: _family("fully_connected", gap9_filters.explain_fully_connected, "4 to 6"),
    SumIntegers: _family("add, sub", gap9_others.explain_sum, "10"),
    AveragePoolIntegers: _family("average_pool_2d", gap9_others.explain_average_pool, "10"),
    MaxPoolIntegers: _family("max_pool_2d", gap9_others.explain_max_pool, "10"),
    ReluIntegers: _family("relu, relu6", gap9_others.explain_relu, "1"),
    QuantizeIntegers: _family("quantize", gap9_others.explain_quantize, "9"),
    SoftmaxIntegers: _family("softmax of 8-bit input", gap9_others.explain_softmax, "11"),
}
