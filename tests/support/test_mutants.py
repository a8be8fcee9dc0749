"""Which places scripts/mutants changes, and which it leaves alone."""

from __future__ import annotations

import pytest

from tests.support.mutants import compiles, mutations


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("y = a + b", ["y = a - b"]),
        ("y = (a) >= (b)", ["y = (a) > (b)"]),
        ("y = x is not None", ["y = x is None"]),
        ("y = np.floor(x)", ["y = np.ceil(x)"]),
        ("y = min(x)", ["y = max(x)"]),
        ("y = 7", ["y = 8"]),
        ("y = 0.5", ["y = 1.0"]),
        ("y = a if b else c", ["y = a if not (b) else c"]),
        ("y = not a", ["y = a"]),
        ("zip(a, b, strict=True)", []),
        ("y = x.reshape(-1, 3)", ["y = x.reshape(1, 3)", "y = x.reshape(-1, 4)"]),
        ("def f(x: int = 3) -> int:\n    '''Add 1.'''\n    raise ValueError(f'{x + 1}')", ["3", "4"]),
    ],
)
def test_single_places(source: str, changed: list[str]) -> None:
    text = source.encode()
    found = [m.apply(text).decode() for m in mutations(text) if compiles(text, m)]
    assert found == (changed if not source.startswith("def") else [source.replace(*changed)])


def test_places_know_their_functions() -> None:
    source = b"A = 1\n\n\n@cache\ndef f(x):\n    def g():\n        return x + 1\n    return g\n"
    assert [(m.line, m.functions) for m in mutations(source)] == [(1, ()), (7, (4, 6)), (7, (4, 6))]
