"""LSH_PROJECTION and SKIP_GRAM against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import kernel_settings, seeds
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import GraphError
from tflq.graph import DType

SEEDS = fixed(values(1, (4, 5), DType.FLOAT32))


@pytest.mark.parametrize("dtype", [DType.INT32, DType.FLOAT32, DType.INT8, DType.STRING], ids=lambda t: t.value)
@pytest.mark.parametrize("which", [(True, True), (False, True), (True, None)])
@few
@given(kind=st.sampled_from(["sparse", "dense"]), rows=st.integers(1, 4), columns=st.integers(1, 40), seed=seeds)
def test_projection(oracle, dtype, which, kind, rows, columns, seed):
    """Keys of 5 to 164 bytes: every branch of the fingerprint."""
    operands = [SEEDS, operand(values(seed, (2, rows, columns), dtype), which[0])]
    if which[1]:
        operands.append(sampled(values(seed, (2, rows), DType.FLOAT32)))
    check(oracle, "lsh_projection", operands, [DType.INT32], type=kind)


def test_many_bits(oracle):
    operands = [fixed(values(1, (3, 31), DType.FLOAT32)), sampled(values(0, (2, 3), DType.INT32))]
    check(oracle, "lsh_projection", operands, [DType.INT32], type="sparse")


def test_projection_refused(oracle):
    x = sampled(values(0, (1, 3), DType.INT32))
    check_refused(oracle, "lsh_projection", [SEEDS, x], [DType.INT32], "type is unknown", type="unknown")
    weights = fixed(values(1, (2,), DType.FLOAT32))
    check_refused(oracle, "lsh_projection", [SEEDS, x, weights], [DType.INT32], "do not fit", type="dense")
    wide = fixed(values(1, (3, 33), DType.FLOAT32))
    check_refused(oracle, "lsh_projection", [wide, x], [DType.INT32], "31 bits", type="dense")


@kernel_settings
@given(
    text=st.text("ab \t\n", max_size=14).map(str.encode),
    size=st.integers(1, 3),
    skip=st.integers(0, 2),
    shorter=st.booleans(),
)
def test_skip_gram(oracle, text, size, skip, shorter):
    x = sampled(np.array([[text]], object))
    check(oracle, "skip_gram", [x], [DType.STRING], ngram_size=size, max_skip_size=skip, include_all_ngrams=shorter)


def test_sentence(oracle):
    x = sampled(np.array([[b"The quick brown fox jumps over the lazy dog!"]], object))
    (found,) = check(oracle, "skip_gram", [x], [DType.STRING], ngram_size=2, max_skip_size=1)
    assert found[0, :3].tolist() == [b"The quick", b"The brown", b"quick brown"]


def test_skip_gram_refused():
    x = sampled(np.array([[b"a b"]], object))
    with pytest.raises(GraphError, match="ngram_size is 0"):
        check(None, "skip_gram", [x], [DType.STRING], ngram_size=0)
