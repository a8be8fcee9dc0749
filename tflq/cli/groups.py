"""Groups of commands that answer an empty call with their help, as bad use, and help in sections."""

from __future__ import annotations

import click

_SECTIONS = {
    "target": "Target and settings",
    "calibration": "Ranges, where the model has none of its own",
    "samples": "Samples",
    "dump": "How a tensor dump is read",
    "board": "A board",
}
"""Name of a record (`options.record`) -> title of its options."""
_SAMPLES = ("data", "span", "count")
_GENERAL = ("threads", "jobs", "scheduler", "report", "as_json", "help")


class HelpfulGroup(click.Group):
    """A group that shows its help on standard error and ends with status 2 where no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Answer an empty command line."""
        if not args and not ctx.resilient_parsing:  # completion parses half a line
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


class SectionedCommand(click.Command):
    """A command whose help has its own options first, then those of each record, then what all commands have."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_SECTIONS.values(), "General")}
        for param in self.get_params(ctx):
            shown = param.get_help_record(ctx)
            if isinstance(param, click.Option) and shown is not None:
                rows[_section(param)].append(shown)
        for title, lines in rows.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _section(param: click.Parameter) -> str:
    record = "samples" if param.name in _SAMPLES else str(param.name).partition("__")[0]
    is_general = param.name in _GENERAL or not param.expose_value
    return _SECTIONS.get(record, "General" if is_general else "Options")
