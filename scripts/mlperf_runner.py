#!/usr/bin/env python3
"""Runs mlcommons/tiny's benchmark/runner with one port in place of its search for USB devices.

The runner looks for serial ports with the USB numbers of its devices file, which a pseudo-terminal does not have. Here
the list of ports that pyserial gives holds one port, with the numbers of the reference device under test, and the list
of pure USB devices is empty. Nothing else of the runner changes. docs/guides/mlperf_tiny.md shows a whole run.

    cd tiny/benchmark/runner
    python mlperf_runner.py --port ~/dut -- -d devices_kws_ic_vww.yaml -t tests_accuracy.yaml -s DATASETS -m a
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

REFERENCE_DUT = "0483:374b"  # l4r5zi in the runner's devices files


def main() -> None:
    """Read the options, put the port in place, and start the runner's main.py with the rest."""
    parser = argparse.ArgumentParser(description="Runs mlcommons' runner on one given port.")
    parser.add_argument("--port", required=True, help="what `tflq dut` printed, or its --link")
    parser.add_argument("--usb", default=REFERENCE_DUT, metavar="VID:PID", help="numbers of the device of type dut")
    parser.add_argument("--runner", type=Path, default=Path(), metavar="DIR", help="folder of the runner's main.py")
    parser.add_argument("arguments", nargs="*", help="the runner's own, behind --")
    options = parser.parse_args()
    program = options.runner / "main.py"
    if not program.is_file():
        parser.error(f"{program}: no such file; name the folder benchmark/runner of mlcommons/tiny with --runner")
    vendor, _, product = options.usb.partition(":")
    offer_port(options.port, int(vendor, 16), int(product, 16))
    sys.path.insert(0, str(program.parent.resolve()))
    sys.argv = [str(program), *options.arguments]
    runpy.run_path(str(program), run_name="__main__")


def offer_port(port: str, vendor: int, product: int) -> None:
    """Let pyserial list this port alone, and pyusb nothing."""
    import usb.core
    from serial.tools import list_ports
    from serial.tools.list_ports_common import ListPortInfo

    found = ListPortInfo(port)
    found.vid, found.pid, found.description = vendor, product, "tflq dut"

    def comports(include_links: bool = False) -> Iterable[ListPortInfo]:  # noqa: ARG001 - pyserial's signature
        return [found]

    def find(find_all: bool = False, **_: object) -> Iterable[object] | None:
        return [] if find_all else None

    list_ports.comports = comports
    usb.core.find = find


if __name__ == "__main__":
    main()
