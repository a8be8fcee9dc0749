"""Help of a command: its options in sections, and its examples."""

from __future__ import annotations

import click

_SECTIONS = {
    "target": "Target and settings",
    "calibration": "Ranges, for models without ranges",
    "samples": "Samples",
    "dump": "Layout and encoding of a tensor dump",
    "board": "Board",
}
"""Name of a record (`options.record`) -> title of its options."""
_SAMPLES = ("data", "labels", "span", "take")
_GENERAL = ("threads", "jobs", "scheduler", "report", "as_json", "help")


class HelpfulGroup(click.Group):
    """A group that shows its help on standard error and ends with status 2 if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help for an empty command line."""
        if not args and not ctx.resilient_parsing:  # completion parses half a line
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


class SectionedCommand(click.Command):
    """A command with a sectioned help: its own options, then the options of each record, then the general options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        for title, lines in option_groups(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(lines)


def option_groups(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the title of each section of options with its options: the form and the help of each."""
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_SECTIONS.values(), "General")}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if isinstance(param, click.Option) and record is not None:
            rows[_section(param)].append(record)
    return {title: lines for title, lines in rows.items() if lines}


def _section(param: click.Parameter) -> str:
    record = "samples" if param.name in _SAMPLES else str(param.name).partition("__")[0]
    is_general = param.name in _GENERAL or not param.expose_value
    return _SECTIONS.get(record, "General" if is_general else "Options")


EXAMPLES = {
    "inspect": ("tflq inspect model.tflite", "tflq inspect model.tflite --tensors --wide"),
    "run": (
        "tflq run model.tflite -i samples.npy -o out.npz",
        "tflq run model.tflite -i samples.npy --target gap9-ne16 --all-tensors -o tensors.npz",
    ),
    "verify": (
        "tflq verify model.tflite",
        "tflq verify model.tflite -i samples.npy --freeze model.tflq.json",
        "tflq verify --baseline model.tflq.json",
    ),
    "compare": (
        "tflq compare model.tflite@gap9-ne16 -i samples.npy --report compare.html",
        "tflq compare board_dump model.tflite@gap9-ne16 -i samples.npy",
    ),
    "dumps": ("tflq dumps board_dump --model model.tflite -i samples.npy",),
    "explain": (
        "tflq explain model.tflite --tensor 3 --index 0,2,1,5",
        "tflq explain model.tflite --target gap9-ne16 --tensor CONV_2D_0_0 --index 3,2,23 --against @float",
    ),
    "diff": ("tflq diff old.tflite new.tflite",),
    "sensitivity": (
        "tflq sensitivity model.tflite --target gap9-ne16",
        "tflq sensitivity model.tflite --target gap9-ne16 --data kws01=kws01 --report layers.html",
    ),
    "search": (
        "tflq search model.tflite --target gap9-ne16 --data kws01=kws01 --at-least 89.5 -o setting.json",
        "tflq search model.tflite --target aipu --backward --drop 0.01",
    ),
    "tune": ("tflq tune model.tflite --target aipu --drop 0.01",),
    "estimate": ("tflq estimate model.tflite --target gap9-ne16 --report estimate.html",),
    "recover": ("tflq recover float.tflite --target gap9-ne16 -s weight_bits=4 -i samples.npy -o recovered.tflite",),
    "convert": (
        "tflq convert model.tflite --target gap9-ne16 --set weight_bits=4 -o out",
        "tflq convert float.tflite --target openvino --calibrate samples.npy -o out",
        "tflq convert model.tflite --target all -o out --report targets.html",
    ),
    "cut": ("tflq cut model.tflite --from 12 --to 15 -o part.tflite",),
    "dequantize": ("tflq dequantize model.tflite -o float.tflite",),
    "export": (
        "tflq export model.tflite --vectors c -o vectors",
        "tflq export model.tflite --program c99 --target gap9-ne16 -n 8 -o program",
    ),
    "bench": (
        "tflq bench kws01 --model model.tflite --data kws01 --target all",
        "tflq bench kws01 --model model.tflite --data kws01 --port /dev/ttyACM0",
    ),
    "dut": ("tflq dut model.tflite --task kws01",),
    "targets": ("tflq targets gap9-ne16",),
    "runtimes": ("tflq runtimes xnnpack tflm",),
    "models fetch": ("tflq models fetch --dir models",),
    "models list": ("tflq models list",),
    "data list": ("tflq data list",),
    "data fetch": ("tflq data fetch kws01", "tflq data fetch --dir datasets"),
    "data build": (
        "tflq data build ic01 --from cifar-10-python.tar.gz",
        "tflq data build sww01 --from speech_commands_v0.02.tar.gz --from musan.tar.gz",
    ),
    "demo": ("tflq demo", "tflq demo -o digits_demo"),
}
"""Name of a command -> command lines."""


def with_examples(command: click.Command, name: str) -> click.Command:
    """Add the examples of a command and of its subcommands to the end of their help."""
    if isinstance(command, click.Group):
        for below, part in command.commands.items():
            with_examples(part, f"{name} {below}")
    lines = EXAMPLES.get(name, ())
    marked = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    if lines and not (command.epilog or "").endswith(marked):
        command.epilog = f"{command.epilog}\n\n{marked}" if command.epilog else marked
    return command
