"""The peer's quantise_and_dump.py with NNTool's expression matcher switched on; runs in NNTool's own environment.

PYTHONPATH=<gap_sdk>/tools/nntool python nntool_worker.py PEER_SCRIPTS MODEL -o DUMP ...
"""

from __future__ import annotations

import sys
from importlib import import_module


class _WithMatcher:
    """NNTool's graph; the fusions that make layers are followed by those that make expressions."""

    def __init__(self, api: object) -> None:
        self._api = api

    def load_graph(self, *arguments: object, **options: object) -> object:
        graph = self._api.load_graph(*arguments, **options)  # type: ignore[attr-defined]
        fusions = graph.fusions

        def both(name: str) -> None:
            fusions(name)
            fusions("expression_matcher")

        graph.fusions = both
        return graph


if __name__ == "__main__":
    sys.path[0] = sys.argv.pop(1)  # this folder has a module of the name nntool
    script = import_module("quantise_and_dump")
    setattr(script, "NNGraph", _WithMatcher(getattr(script, "NNGraph")))  # noqa: B009, B010
    sys.exit(script.main())
