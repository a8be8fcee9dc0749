"""Operands that are constant in most files, computed at run time here: another one for each sample, against TFLite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.nodes import Result, build, fixed, sampled, values
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import DType
from tflq.interpreter import Engine

INT8, INT32, FLOAT32 = DType.INT8, DType.INT32, DType.FLOAT32
X = sampled(values(1, (3, 4, 6, 2), INT8))
W = sampled(values(2, (3, 2, 4, 6, 4), INT8))
SIX = sampled(np.concatenate([W.value] * 3, 1))
ONES = fixed([1, 1, 1])
WEIGHTS, TABLE = fixed(np.array([1, 2], np.float32)), fixed(values(0, (4, 3), FLOAT32))
HALF, ZERO = fixed(np.float32(0.5)), fixed(np.float32(0))


def per_sample(*numbers):
    return sampled(np.array(numbers, np.int32))


BOX = per_sample([[1, 1], [0, 3]], [[1, 1], [3, 0]], [[2, 0], [1, 2]])
CASES = {
    "slice": (
        [X, per_sample([1, 2, 0], [0, 1, 0], [2, 4, 1]), per_sample([2, 2, 1], [2, -1, 2], [0, 1, 1])],
        [INT8],
        {},
    ),
    "strided_slice": (
        [X, per_sample([1, 2, 0], [0, 1, 0], [2, 4, 1]), per_sample([3, 4, 1], [2, 3, 1], [4, 6, 2]), ONES],
        [INT8],
        {},
    ),
    "tile": ([X, per_sample([1, 2, 1], [0, 2, 1], [2, 1, 1])], [INT8], {}),
    "fill": ([per_sample([2, 2], [3, 1], [0, 2]), sampled(X.value[:, 0, 0, 0])], [INT8], {}),
    "range": ([per_sample(1, 2, 3), per_sample(5, 9, 3), fixed(1)], [INT32], {}),
    "broadcast_to": (
        [sampled(X.value[:, :1, :1]), per_sample([4, 6, 2], [1, 6, 2], [2, 2, 2])],
        [INT8],
        {},
    ),
    "one_hot": ([per_sample([1, 2], [3, 0], [0, 1]), per_sample(4, 2, 0), fixed(1), fixed(0)], [INT32], {"axis": -1}),
    "topk_v2": ([X, per_sample(2, 1, 0)], [INT8, INT32], {}),
    "mirror_pad": (
        [X, per_sample([[1, 2], [3, 0], [1, 1]], [[1, 2], [0, 3], [1, 1]], [[0, 1], [3, 0], [0, 1]])],
        [INT8],
        {},
    ),
    "reverse_v2": ([X, per_sample([1], [0], [2])], [INT8], {}),
    "split_v": ([X, per_sample([2, 4], [1, 5], [0, -1]), fixed(1)], [INT8, INT8], {"num_splits": 2}),
    "resize_nearest_neighbor": ([W, per_sample([3, 4], [1, 2], [7, 9])], [INT8], {}),
    "resize_bilinear": ([W, per_sample([3, 4], [1, 2], [7, 9])], [INT8], {}),
    "space_to_batch_nd": ([W, per_sample([2, 3], [2, 3], [2, 3]), BOX], [INT8], {}),
    "batch_to_space_nd": ([SIX, per_sample([2, 3], [3, 2], [1, 1]), BOX], [INT8], {}),
    "scatter_nd": ([fixed([[1], [1], [0], [3]]), X, per_sample([5, 6, 2], [4, 6, 2], [9, 6, 2])], [INT8], {}),
    "sparse_to_dense": (
        [fixed([1, 2, 0, 1]), per_sample([5], [3], [9]), sampled(X.value[:, :, 0, 0]), fixed(np.int8(1))],
        [INT8],
        {},
    ),
    "unsorted_segment_sum": (
        [sampled(X.value.astype(np.int32)), fixed([1, 2, 0, 1]), per_sample(5, 3, 4)],
        [INT32],
        {},
    ),
    "dilate": ([X, per_sample([1, 2, 1], [1, 1, 1], [3, 1, 2]), fixed(np.int8(1))], [INT8], {}),
    "embedding_lookup_sparse": (
        [fixed([1, 2]), fixed([[0, 0], [1, 1]]), per_sample([3, 2], [2, 2], [5, 1]), WEIGHTS, TABLE],
        [FLOAT32],
        {},
    ),
    "non_max_suppression_v4": (
        [sampled(values(0, (3, 9, 4), FLOAT32)), sampled(values(1, (3, 9), FLOAT32)), per_sample(4, 0, 9), HALF, ZERO],
        [INT32, INT32],
        {},
    ),
    "where": ([sampled(X.value > 0)], [DType.INT64], {}),
    "unique": ([sampled(X.value[:, :, 0, 0] % 3)], [INT8, INT32], {}),
    "skip_gram": ([sampled(np.array([[b"a b c"], [b"a"], [b"a b"]], object))], [DType.STRING], {"ngram_size": 2}),
}


@pytest.mark.parametrize("operator", CASES)
def test_one_for_each_sample(oracle, operator):
    operands, kinds, attributes = CASES[operator]
    graph = build(operator, operands, [Result(kind) for kind in kinds], [()] * len(kinds), **attributes)
    inputs = [x.value for x in operands if not x.constant]
    content = model_to_bytes(graph)
    judged = oracle.run(content, inputs)
    ours = Engine(model_from_bytes(content, operator).main).run(inputs)
    for t in graph.outputs:
        for sample in range(3):
            theirs = judged.sample(t, sample)
            mine = np.asarray(ours[t][sample])
            assert mine.dtype == theirs.dtype
            assert mine.shape == theirs.shape
            assert np.array_equal(mine, theirs)
