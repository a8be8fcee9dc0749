"""The oracle for tests: one worker per test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tflq.errors import MissingExtraError
from tflq.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """TFLite's reference kernels in ai-edge-litert (else tensorflow); tests skip where neither is installed."""
    try:
        judge = Oracle()
    except MissingExtraError as error:
        pytest.skip(str(error))
    with judge:
        yield judge


@pytest.fixture(scope="session")
def optimized_oracle() -> Iterator[Oracle]:
    """TFLite's optimized kernels, for operators without a reference kernel."""
    try:
        judge = Oracle(kernels="BUILTIN")
    except MissingExtraError as error:
        pytest.skip(str(error))
    with judge:
        yield judge
