"""The reference of settings: each key of each target, from the option records."""

from __future__ import annotations

from collections.abc import Mapping

from site_pages.tables import table
from tflq.converters.targets import find_target, target_names

PATH = "reference/settings.md"
_HEAD = """# Settings of targets

`--set KEY=VALUE` changes a key for the whole graph, `--layer PATTERN:KEY=VALUE` for single layers
([Settings of targets](../guides/convert.md#settings-of-targets)). A key marked "graph" cannot be set for a layer.
"""


def pages() -> Mapping[str, str]:
    """Return the page: a table per target."""
    parts = [_HEAD]
    for name in target_names():
        target = find_target(name)
        rows = [
            (f"`{s.key}`", str(s.default), s.allowed, "layer" if s.per_layer else "graph", s.help)
            for s in target.settings
        ]
        heading = ("key", "default", "allowed", "scope", "effect")
        parts.append(f"## {name}\n\n{target.summary}\n\n" + (table(heading, rows) if rows else "No settings.\n"))
    return {PATH: "\n".join(parts)}
