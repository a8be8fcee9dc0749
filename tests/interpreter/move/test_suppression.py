"""NON_MAX_SUPPRESSION_V4 and V5, TFLite_Detection_PostProcess against TFLite; many scores are equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings
from tests.support.nodes import check, check_refused, few, fixed, sampled
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import GraphError
from tflq.graph import Attributes, DType, Graph, Node, Tensor
from tflq.interpreter import Engine
from tflq.schemas.tflite.flexbuffer import encode_flexbuffer

SUPPRESSED = [DType.INT32, DType.INT32]


def boxes_and_scores(seed, count):
    rng = np.random.default_rng(seed)
    boxes, scores = rng.integers(0, 6, (3, count, 4)), rng.integers(0, 6, (3, count)) / 5
    return sampled(boxes.astype(np.float32)), sampled(scores.astype(np.float32))


@kernel_settings
@given(
    count=st.integers(1, 50),
    size=st.integers(0, 12),
    overlap=st.sampled_from([0.0, 0.3, 0.5]),
    threshold=st.sampled_from([-1.0, 0.0, 0.3]),
    sigma=st.sampled_from([None, 0.0, 0.1, 0.5]),
    seed=st.integers(0, 99),
)
def test_suppression(oracle, count, size, overlap, threshold, sigma, seed):
    limits = [fixed(size), fixed(np.float32(overlap)), sampled(np.full(3, threshold, np.float32))]
    operands = [*boxes_and_scores(seed, count), *limits]
    if sigma is None:
        check(oracle, "non_max_suppression_v4", operands, SUPPRESSED)
    else:
        results = [DType.INT32, DType.FLOAT32, DType.INT32]
        check(oracle, "non_max_suppression_v5", [*operands, fixed(np.float32(sigma))], results)


def test_suppression_refused(oracle):
    boxes, scores = boxes_and_scores(0, 3)
    limits = [fixed(np.float32(0.5)), fixed(np.float32(0))]
    check_refused(oracle, "non_max_suppression_v4", [boxes, scores, fixed(-1), *limits], SUPPRESSED, "0 or more")
    check_refused(oracle, "non_max_suppression_v4", [scores, scores, fixed(1), *limits], SUPPRESSED, "do not fit")
    operands = [boxes, scores, fixed(1), *limits, fixed(np.float32(-1))]
    results = [DType.INT32, DType.FLOAT32, DType.INT32]
    check_refused(oracle, "non_max_suppression_v5", operands, results, "sigma")


OPTIONS = {
    "max_detections": 5,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.2,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def detection(options, boxes, columns, anchors, dtype=DType.FLOAT32):
    """A graph of the one operator: encodings and predictions are inputs, anchors a constant."""
    scales = [(0.1, 128), (1 / 256, 0), (0.02, 3)]
    q = [affine(dtype, *pair) if dtype is DType.UINT8 else None for pair in scales]
    slots = options["max_detections"] * options["max_classes_per_detection"]
    tensors = [Tensor("encodings", (1, boxes, 4), dtype, q[0]), Tensor("predictions", (1, boxes, columns), dtype, q[1])]
    tensors.append(Tensor("anchors", anchors.shape, dtype, q[2], data=anchors))
    tensors += [
        Tensor(f"y{i}", shape, DType.FLOAT32) for i, shape in enumerate([(1, slots, 4), (1, slots), (1, slots), (1,)])
    ]
    node = Node(
        "custom",
        (0, 1, 2),
        (3, 4, 5, 6),
        Attributes(),
        "detection",
        custom_code="TFLite_Detection_PostProcess",
        custom_options=encode_flexbuffer(options),
    )
    return Graph(tensors, [node], (0, 1), (3, 4, 5, 6))


def drawn(rng, shape, low, high, dtype):
    if dtype is DType.UINT8:
        return rng.integers(0, 256, shape).astype(np.uint8)
    return (np.round(rng.uniform(low, high, shape) * 8) / 8).astype(np.float32)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.UINT8], ids=lambda t: t.value)
@pytest.mark.parametrize("regular", [False, True])
@few
@given(
    boxes=st.integers(1, 30),
    classes=st.integers(1, 5),
    background=st.integers(0, 1),
    per_box=st.integers(1, 3),
    per_class=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_detection(oracle, dtype, regular, boxes, classes, background, per_box, per_class, seed):
    options = OPTIONS | {"num_classes": classes, "use_regular_nms": regular}
    options |= {"max_classes_per_detection": per_box, "detections_per_class": per_class}
    rng = np.random.default_rng(seed)
    anchors = drawn(rng, (boxes, 4), 0, 1, dtype)
    if dtype is DType.UINT8:
        anchors = np.maximum(anchors, 3)  # no negative sizes
    graph = detection(options, boxes, classes + background, anchors, dtype)
    columns = classes + background
    inputs = [drawn(rng, (3, 1, boxes, 4), -3, 3, dtype), drawn(rng, (3, 1, boxes, columns), 0, 1, dtype)]
    content = model_to_bytes(graph)
    judged = oracle.run(content, inputs).tensors
    ours = Engine(model_from_bytes(content, "detection").main).run(inputs)
    assert_same_bits(ours[6], judged[6], "number of boxes")
    for sample, count in enumerate(ours[6][:, 0].astype(int)):
        slots = np.arange(count)[:, None] * per_box + np.arange(min(classes, per_box))  # others are undefined
        kept = np.arange(count) if regular else slots.reshape(-1)
        for t in (3, 4, 5):
            assert_same_bits(ours[t][sample, 0, kept], judged[t][sample, 0, kept], f"tensor {t}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold"),
        ({"num_classes": 1}, "num_classes is 1"),
        ({"max_detections": 0}, "1 or more"),
        ({"y_scale": "wide"}, "option y_scale"),
    ],
)
def test_detection_refused(changes, message):
    graph = detection(OPTIONS | {"max_detections": 2}, 4, 3, np.zeros((4, 4), np.float32))
    node = graph.nodes[0]
    changed = Node(**{**vars(node), "custom_options": encode_flexbuffer(OPTIONS | changes)})
    with pytest.raises(GraphError, match=message):
        Engine(Graph(graph.tensors, [changed], graph.inputs, graph.outputs))
