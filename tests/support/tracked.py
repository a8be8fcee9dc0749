"""The files that git tracks, for tests that hold the repository itself to its rules."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK_MODE = "120000"


@dataclass(frozen=True)
class TrackedFile:
    """One entry of git's index: its mode ("100644", "100755", "120000" for a link), object and path from the root."""

    mode: str
    object_id: str
    path: str


def git(*arguments: str) -> str:
    """Return git's output in the repository; skip the test where this is no clone or git is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no git clone: what is tracked cannot be listed")
    return done.stdout.decode()


def tracked_files() -> list[TrackedFile]:
    """Return the entries of git's index whose file is there, in the order of their paths."""
    files = []
    for line in git("ls-files", "--stage", "-z").rstrip("\0").split("\0"):
        entry, path = line.split("\t", 1)
        mode, object_id, _ = entry.split()
        if os.path.lexists(ROOT / path):
            files.append(TrackedFile(mode, object_id, path))
    return files
