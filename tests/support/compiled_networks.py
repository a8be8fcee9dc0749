"""Engine(backend="c") beside numpy on networks of many forms, in a target's arithmetic."""

from __future__ import annotations

import numpy as np

from tests.support import c_compiler
from tests.support.float_networks import NETWORKS, measured
from tests.support.tpu_mlir_variants import VARIANTS
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.interpreter import Engine, lower

CHOSEN = [*NETWORKS, *(n for n in VARIANTS if n.startswith(("drawn", "max_pool", "average_pool", "mul", "add")))][::2]


def differing(target_name: str, name: str) -> list[str]:
    """Return the names of the tensors in which compiled C differs from numpy."""
    c_compiler.compiler()
    target = find_target(target_name)
    graph, inputs, _ = measured(NETWORKS.get(name) or VARIANTS[name])
    made = lower(target.quantize(graph, parse_settings(target.settings)), target.arithmetic)
    keep = [t for node in made.nodes for t in node.outputs]
    plain, compiled = Engine(made).run(inputs, keep), Engine(made, backend="c").run(inputs, keep)
    return [made.tensors[t].name for t in keep if not np.array_equal(plain[t], compiled[t])]
