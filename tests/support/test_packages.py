"""Every module of tflq belongs to one package, and every package has tests."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.packages import PACKAGES
from tests.support.tracked import ROOT


def test_each_module_belongs_to_one_package() -> None:
    counts = Counter(path for package in PACKAGES.values() for path in package.modules(ROOT))
    modules = [path for path in (ROOT / "tflq").rglob("*.py") if "data" not in path.relative_to(ROOT).parts]
    assert {path.relative_to(ROOT).as_posix(): counts[path] for path in modules if counts[path] != 1} == {}


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_has_tests(name: str) -> None:
    assert PACKAGES[name].test_files(ROOT)
