"""Engine(backend="c") gives what numpy gives, in every tensor, on networks of many forms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import c_compiler
from tests.support.float_networks import NETWORKS, measured
from tests.support.tpu_mlir_variants import VARIANTS
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.interpreter import Engine, lower

TARGET = find_target("tpu-mlir")
CHOSEN = [*NETWORKS, *(n for n in VARIANTS if n.startswith(("drawn", "max_pool", "average_pool", "mul", "add")))][::2]


@pytest.mark.parametrize("name", CHOSEN)
def test_every_tensor(name: str) -> None:
    c_compiler.compiler()
    graph, inputs, _ = measured(NETWORKS.get(name) or VARIANTS[name])
    made = lower(TARGET.quantise(graph, parse_settings(TARGET.settings)), TARGET.arithmetic)
    keep = [t for node in made.nodes for t in node.outputs]
    plain, compiled = Engine(made).run(inputs, keep), Engine(made, backend="c").run(inputs, keep)
    assert [made.tensors[t].name for t in keep if not np.array_equal(plain[t], compiled[t])] == []
