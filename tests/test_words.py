"""The English of each part of the tree stays at least as plain as it is: ceilings that only go down (scripts/words)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json

import pytest

from tests.support.tracked import ROOT

CEILINGS = json.loads((ROOT / "tests" / "data" / "words.json").read_text(encoding="utf-8"))
"""Part of the tree -> figure of scripts/words -> ceiling. Lower a ceiling when you rewrite text; never raise one."""
LIMITS = {"headless": 1.0, "no_noun": 5.0, "adjective": 2.0, "found": 0.0, "replaced": 75.0}
"""Limits of a part that the table does not name: a new package is held to them at once."""

PARTS = sorted(
    [f"tflq/{p.name}" for p in (ROOT / "tflq").iterdir() if any(p.glob("**/*.py"))]
    + ["docs", "scripts", "tflq/graph/rewriting"]
)


def load_words():
    loader = importlib.machinery.SourceFileLoader("words", str(ROOT / "scripts" / "words"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("words", loader))
    loader.exec_module(module)
    return module


WORDS = load_words()


def measure(part):
    sums, _, _ = WORDS.measure(str(ROOT / part), None, False)
    return {
        name: round(base * sums["all", name] / (sums["all", whole] or 1), 1)
        for name, (whole, base, _) in WORDS.FIGURES.items()
    }


@pytest.mark.parametrize("part", PARTS)
def test_text_is_as_plain_as_before(part):
    ceilings = CEILINGS.get(part, LIMITS)
    over = {name: (value, ceilings[name]) for name, value in measure(part).items() if value > ceilings[name]}
    assert not over, f"{part}: figure (measured, ceiling): {over}; scripts/words {part} --worst 20 lists the sentences"


def test_ceilings_name_existing_parts():
    assert [part for part in CEILINGS if part not in PARTS] == []
