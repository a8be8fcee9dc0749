"""`tflq.dut`: a virtual device under test on a pseudo-terminal, for mlcommons' runner and others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tflq.api.options import CalibrationOptions, TargetOptions, changed
from tflq.api.read_model import ModelSource, read_model
from tflq.api.target import Arithmetic, choose_execution, complete
from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.interface_board import InterfaceBoard
from tflq.benchmarks.serial_port import PseudoTerminal, linked
from tflq.benchmarks.tasks import find_task
from tflq.errors import UsageError
from tflq.interpreter.runtimes import REFERENCE, RuntimeName


@dataclass(frozen=True)
class DutOptions:
    """What the device is.

    Attributes:
        target: it runs this target's integers.
        arithmetic: as of `RunOptions`.
        runtime: as of `RunOptions`.
        calibration: ranges for the target.
        time_us: the time of an inference that it states, answering no earlier; None for the measured one.
        name: how it calls itself; None for tflq and the arithmetic.
        streams: for sww01: a folder of recordings; the device then stands behind an interface board that plays them.
        link: a symbolic link to the port while it runs, for a name that stays the same.
    """

    target: TargetOptions | str | None = None
    arithmetic: Arithmetic | None = None
    runtime: RuntimeName = REFERENCE
    calibration: CalibrationOptions = CalibrationOptions()
    time_us: int | None = None
    name: str | None = None
    streams: Path | None = None
    link: Path | None = None


@dataclass(frozen=True)
class VirtualDevice:
    """A device that waits for a host.

    Attributes:
        port: that a host opens like that of a board.
        terminal: its other end.
        device: what answers.
    """

    port: str
    terminal: PseudoTerminal
    device: Device

    def serve(self) -> None:
        """Answer until interrupted, or until the terminal is stopped from another thread."""
        self.terminal.serve(self.device)


@contextmanager
def dut(
    model: ModelSource, task: str, options: DutOptions = DutOptions(), **changes: object
) -> Iterator[VirtualDevice]:
    """Yield a model behind the serial protocol of MLPerf Tiny; its port is open as long as the block runs.

    Args:
        model: to run.
        task: what it is: kws01, vww01, ic01, ic02, ad01, sww01.
        options: arithmetic, times and names.
        **changes: fields of the options.

    Raises:
        OptionError, UnsupportedError: a task, target or model that do not fit, or a system without pseudo-terminals.
    """
    options = changed(options, changes)
    target, chosen_task = complete(options.target, options.calibration), find_task(task)
    arithmetic, runtime = options.arithmetic, options.runtime
    execution = choose_execution(read_model(model), target, options.calibration, arithmetic=arithmetic, runtime=runtime)
    inference = Inference(chosen_task, execution)
    inference.check()
    name = options.name or f"tflq {execution.name}"
    if options.streams is None:
        device = Device(inference, name, options.time_us)
    elif chosen_task.name != "sww01":
        raise UsageError(f"--streams is for sww01; the task is {chosen_task.name}")
    else:
        device = InterfaceBoard(inference, name, options.time_us, folder=options.streams)
    terminal = PseudoTerminal()
    try:
        with linked(terminal.path, options.link):
            yield VirtualDevice(str(options.link or terminal.path), terminal, device)
    finally:
        terminal.close()
