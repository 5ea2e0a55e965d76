"""The flags of `onthedot jobs add` and `jobs edit` that make a target: those that the kinds of target declare, also of
plug-ins.

They are read from the specs only when one of these commands runs: the others should not wait for them.
"""

from __future__ import annotations

import inspect
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from onthedot.cli.values import header_value, pair_value, parsed_value

if TYPE_CHECKING:
    from onthedot.model.targets import Flag, TargetSpec

__all__ = ["TargetCommand", "choosers", "target_given", "target_of"]

_GIVEN = "onthedot.target_flags"


class TargetCommand(TyperCommand):
    after = "count"  # where the flags stand in the help

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        place = next((number for number, param in enumerate(own, 1) if param.name == self.after), len(own))
        return [*own[:place], *dict.fromkeys(self._flags().values()), *own[place:]]

    def invoke(self, ctx: Any) -> Any:
        flags = self._flags()
        values = {option.name: ctx.params.pop(option.name) for option in dict.fromkeys(flags.values())}
        ctx.meta[_GIVEN] = {field: (option.opts[-1], values[option.name]) for field, option in flags.items()}
        return super().invoke(ctx)

    def _flags(self) -> dict[tuple[str, str], Any]:
        return _options(self._reserved())

    def _reserved(self) -> frozenset[str]:
        """Names that a flag of a target can't have."""
        return frozenset(name for param in self.params for name in param.opts)


def target_given(ctx: typer.Context) -> list[str]:
    """The flags of a target that were given."""
    given: dict[tuple[str, str], tuple[str, Any]] = ctx.meta[_GIVEN]
    return list(dict.fromkeys(name for name, value in given.values() if value not in (None, [], ())))


def target_of(ctx: typer.Context, present: str | None = None) -> dict[str, Any]:
    """The target that was asked for. The first flag of a kind chooses it, and others that say so; without one, the
    flags are those of the kind `present`."""
    given: dict[tuple[str, str], tuple[str, Any]] = ctx.meta[_GIVEN]
    firsts = [
        (spec, given[_tag(spec), flag.field])
        for spec in _kinds()
        for place, flag in enumerate(spec.flags)
        if flag.chooses or not place
    ]
    chosen = {name: spec for spec, (name, value) in firsts if value}
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} can't be combined: a job has one target")
    own = next((spec for spec in _kinds() if _tag(spec) == present), None)
    kind = next(iter(chosen.values()), own)
    if present is not None:
        known = [given[_tag(kind), flag.field][0] for flag in kind.flags] if kind is not None else []
        if strange := [name for name in target_given(ctx) if name not in known]:
            whose = present if kind is None else _tag(kind)
            raise typer.BadParameter(f"{' and '.join(strange)}: not an option of a target of the type {whose}")
    if kind is None:
        return {}
    texts = {flag.field: given[_tag(kind), flag.field][1] for flag in kind.flags}
    flags = {flag.field: flag for flag in kind.flags}
    fields = {
        name: _text_of(text) if flags[name].file else _read(_type(kind, name), text, flags[name].divider)
        for name, text in texts.items()
        if text not in (None, [], ())
    }
    return {"type": _tag(kind), **fields}


def choosers(kind: str) -> list[str]:
    """The fields of which a target of this kind has one."""
    found = next((spec for spec in _kinds() if _tag(spec) == kind), None)
    flags = () if found is None else found.flags
    return [flag.field for place, flag in enumerate(flags) if flag.chooses or not place]


def _kinds() -> list[type[TargetSpec]]:
    from onthedot.model.targets.registry import specs

    return [spec for spec in specs().values() if spec.flags]


def _tag(spec: type[TargetSpec]) -> str:
    return str(spec.__struct_config__.tag)


@lru_cache(maxsize=1)
def _options(reserved: frozenset[str]) -> dict[tuple[str, str], Any]:
    """By kind and field. Kinds share flags of one name; one that jobs have themselves gets `--target-` before it."""
    found: dict[tuple[str, str], str] = {}
    parameters: dict[str, inspect.Parameter] = {}
    helps: dict[str, list[str]] = {}
    for spec in _kinds():
        for flag in spec.flags:
            names = _names(flag, reserved)
            name = "target_" + names[-1].lstrip("-").replace("-", "_")
            found[_tag(spec), flag.field] = name
            kind: Any = list[str] if get_origin(_type(spec, flag.field)) in (dict, list) else str
            helps.setdefault(name, []).append(flag.help)
            told = Annotated[kind | None, typer.Option(*names, help=". ".join(helps[name]))]
            parameters[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=told)

    def command(**_: Any) -> None:
        """Never called: it only lends its options."""

    command.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: at.annotation for name, at in parameters.items()}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    made = {param.name: param for param in typer.main.get_command(app).params}
    return {field: made[name] for field, name in found.items()}


def _names(flag: Flag, reserved: frozenset[str]) -> tuple[str, ...]:
    names = flag.names or (f"--{flag.field.replace('_', '-')}",)
    return names if reserved.isdisjoint(names) else (f"--target-{flag.field.replace('_', '-')}",)


def _type(spec: type[TargetSpec], name: str) -> Any:
    import msgspec

    from onthedot.model.accepted import basic, members

    field = next(field for field in msgspec.structs.fields(spec) if field.name == name)
    return next(basic(member) for member in members(field.type) if member is not type(None))


def _text_of(file: str) -> str:
    """What is in a file; `-` is the standard input."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} can't be read: {error}") from None


def _read(kind: Any, text: Any, divider: str) -> Any:
    """A text as the type of its field wants it."""
    if get_origin(kind) is list:
        return list(text)
    if isinstance(text, (list, tuple)):
        return dict(header_value(item) if divider == ":" else pair_value(item, divider) for item in text)
    if get_origin(kind) is Literal:
        return next((choice for choice in get_args(kind) if str(choice).lower() == text.lower()), text)
    return text if kind is str else parsed_value(text)
