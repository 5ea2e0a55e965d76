"""Creates a command group with the settings that all groups share."""

from __future__ import annotations

import typer

__all__ = ["command_group"]


def command_group(help_text: str) -> typer.Typer:
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
