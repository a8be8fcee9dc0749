"""A small model that uses every part of the format, for tests that need no data."""

from __future__ import annotations

from tflq.schemas.tflite import (
    BlockwiseQuantization,
    Buffer,
    BuiltinOperator,
    Conv2DOptions,
    CustomQuantization,
    DimensionMetadata,
    DimensionType,
    ExternalBuffer,
    ExternalBufferGroup,
    Int32Vector,
    Metadata,
    Model,
    Operator,
    OperatorCode,
    Padding,
    QuantizationParameters,
    SignatureDef,
    SparsityParameters,
    StablehloDotGeneralOptions,
    StablehloPrecisionConfig,
    SubGraph,
    Tensor,
    TensorMap,
    TensorType,
    Uint8Vector,
    Uint16Vector,
    VariantSubType,
    set_builtin_code,
)


def sample_model() -> Model:
    """Build the model."""
    convolution, dot, custom = OperatorCode(version=3), OperatorCode(), OperatorCode(custom_code="Mine")
    set_builtin_code(convolution, BuiltinOperator.CONV_2D)
    set_builtin_code(dot, BuiltinOperator.STABLEHLO_DOT_GENERAL)
    set_builtin_code(custom, BuiltinOperator.CUSTOM)
    return Model(
        version=3,
        operator_codes=[convolution, dot, custom],
        subgraphs=[_subgraph(), SubGraph(name="empty", tensors=[], operators=[], inputs=[], outputs=[])],
        description="",
        buffers=[Buffer(), Buffer(data=bytes(range(100))), Buffer(data=b""), Buffer(offset=1, size=1)],
        metadata=[Metadata(name="min_runtime_version", buffer=1)],
        metadata_buffer=[1],
        signature_defs=[
            SignatureDef(
                inputs=[TensorMap(name="x", tensor_index=0)], outputs=[], signature_key="main", deprecated_tag="old"
            )
        ],
        external_buffer_groups=[ExternalBufferGroup(name="weights.bin")],
        external_buffers=[ExternalBuffer(id=1, group=0, offset=1 << 40, length=5, packing="none")],
    )


def _subgraph() -> SubGraph:
    return SubGraph(
        name="größe",
        tensors=[
            Tensor(shape=[1, 2], shape_signature=[-1, 2], name="x", type=TensorType.INT8, quantization=_per_axis()),
            Tensor(shape=[], has_rank=True, name="blocks", type=TensorType.INT4, quantization=_details()),
            Tensor(name="sparse", buffer=1, sparsity=_sparsity(), is_variable=True),
            Tensor(type=TensorType.VARIANT, variant_tensors=[VariantSubType(shape=[3], has_rank=True)]),
            Tensor(type=TensorType.FLOAT8_E5M2, external_buffer=1),
        ],
        inputs=[0],
        outputs=[2],
        operators=[
            Operator(
                inputs=[0, 1, -1],
                outputs=[2],
                builtin_options=Conv2DOptions(padding=Padding.VALID, stride_w=2, stride_h=1),
                mutating_variable_inputs=[False, True, False],
                intermediates=[],
            ),
            Operator(
                opcode_index=1,
                inputs=[0],
                outputs=[],
                builtin_options_2=StablehloDotGeneralOptions(
                    lhs_batching_dimensions=[1, 1 << 40], precision_config=[StablehloPrecisionConfig.HIGHEST]
                ),
                debug_metadata_index=4,
            ),
            Operator(opcode_index=2, inputs=[], outputs=[], custom_options=bytes(50)),
        ],
    )


def _per_axis() -> QuantizationParameters:
    return QuantizationParameters(
        min=[-1.0, -2.0], max=[1.0, 2.0], scale=[0.5, 0.25], zero_point=[3, -(1 << 40)], quantized_dimension=1
    )


def _details() -> QuantizationParameters:
    return QuantizationParameters(details=BlockwiseQuantization(scales=1, zero_points=-1, block_size=32))


def _sparsity() -> SparsityParameters:
    sparse = DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=Uint16Vector(values=[0, 65535, 1]),
        array_indices=Uint8Vector(values=[255, 1, 2]),
    )
    wide = DimensionMetadata(dense_size=4, array_segments=Int32Vector(values=[-1]), array_indices_type=1)
    return SparsityParameters(traversal_order=[0, 1], block_map=[], dim_metadata=[sparse, wide])


def custom_quantization() -> QuantizationParameters:
    """Build the one union member with its own alignment."""
    return QuantizationParameters(details=CustomQuantization(custom=b"0123456789"))
