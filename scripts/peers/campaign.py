"""What campaigns against peers share: where a peer is, the verdict on one network, totals and exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn


class Verdict(Enum):
    """What came out for one network in one scheme."""

    EQUAL = "equal"
    KNOWN = "known difference"  # has a name and a condition in the target's page
    REFUSED_BY_BOTH = "refused by both"
    REFUSED_BY_PEER = "refused by the peer"
    REFUSED_BY_TFLQ = "refused by tflq"
    DIFFERS = "differs"
    FAILED = "failed"

    @property
    def agrees(self) -> bool:
        return self in (Verdict.EQUAL, Verdict.REFUSED_BY_BOTH)

    @property
    def is_failure(self) -> bool:
        return self in (Verdict.REFUSED_BY_TFLQ, Verdict.DIFFERS, Verdict.FAILED)


@dataclass(frozen=True)
class Row:
    """One network in one scheme: how many checks were made (types, constants, tensors), and what differed first."""

    network: str
    scheme: str
    verdict: Verdict
    checks: int = 0
    words: str = ""


@dataclass(frozen=True)
class Peer:
    """A peer's scripts (they come with the data) and what its `setup` made."""

    scripts: Path
    target: Path


def find(name: str, target_name: str | None = None) -> Peer:
    """The peer whose scripts have this name; ends the program with one line and status 2 where it is not set up."""
    data, peers = os.environ.get("TFLQ_DATA"), os.environ.get("TFLQ_PEERS")
    made = target_name or name
    scripts, target = Path(data or "", "peers", name), Path(peers or "", made)
    if not data or not scripts.is_dir():
        _refuse(
            f"TFLQ_DATA: {data or 'not set'}: has no peers/{name}; name the folder of models, golden data and peers"
        )
    if not peers or not target.is_dir():
        _refuse(f"TFLQ_PEERS: {peers or 'not set'}: has no {made}; {scripts / 'setup'} makes it, in a folder of yours")
    return Peer(scripts, target)


def _refuse(line: str) -> NoReturn:
    print(line, file=sys.stderr)
    raise SystemExit(2)


def parser(documentation: str | None, networks: int = 20) -> argparse.ArgumentParser:
    """The options that every campaign has."""
    result = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--networks", type=int, default=networks, help=f"how many are drawn ({networks})")
    result.add_argument("--seed", type=int, default=1, help="of the draws (1)")
    result.add_argument("--jobs", type=int, default=1, help="networks at a time (1)")
    result.add_argument("--json", type=Path, help="write the rows, too")
    return result


def report(rows: Iterable[Row], to: Path | None = None) -> int:
    """Prints rows as they come, then the totals of each scheme; 1 where a row is a failure."""
    seen = []
    for row in rows:
        seen.append(row)
        words = f": {row.words}" if row.words else ""
        print(f"{row.verdict.value:20} {row.scheme:12} {row.network}  {row.checks} checks{words}", flush=True)
    for scheme in sorted({row.scheme for row in seen}):
        counts = Counter(row.verdict for row in seen if row.scheme == scheme)
        agree = sum(n for verdict, n in counts.items() if verdict.agrees)
        total = sum(counts.values())
        split = ", ".join(f"{n} {verdict.value}" for verdict, n in counts.most_common())
        print(f"{scheme}: {agree} of {total} agree ({100 * agree / total:.1f} %): {split}")
    if to:
        to.write_text(
            json.dumps([{**asdict(row), "verdict": row.verdict.value} for row in seen], indent=1), encoding="utf-8"
        )
    return int(any(row.verdict.is_failure for row in seen))
