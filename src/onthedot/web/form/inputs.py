"""One input of the form: how a value of a field is written in it, and what a text in it means."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.accepted import accepted, basic, members
from onthedot.model.decoding import to_builtins
from onthedot.model.duration import Duration

__all__ = ["FieldMistake", "FormInput", "Widget", "text_of", "value_of", "widget_of"]

Widget = Literal["text", "number", "duration", "checkbox", "choice", "words", "lines", "pairs", "json", "code"]
"""`words`: names with commas between them. `lines`: one text per line. `pairs`: "name: value" on each line."""


class FormInput(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is that of the input, `path` that of the field in the JSON of a job: a target of each kind has inputs of
    its own, so that nothing typed is lost when somebody tries another kind."""

    name: str
    path: str
    label: str
    help: str = ""
    widget: Widget = "text"
    choices: tuple[str, ...] = ()
    default: str = ""  # what a field means that is left empty
    divider: str = ":"
    required: bool = False
    secret: bool = False


def widget_of(kind: Any, *, words: bool = False) -> tuple[Widget, tuple[str, ...]]:
    """Which input a type needs, and between what it chooses."""
    plain = next((basic(member) for member in members(kind) if member is not type(None)), str)
    origin = get_origin(plain)
    if origin is Literal:
        return "choice", tuple(map(str, get_args(plain)))
    if origin is list:
        return ("words" if words else "lines"), ()
    if origin is dict:
        texts = get_args(plain)[1:] == (str,)
        return ("pairs" if texts else "json"), ()
    simple: dict[Any, Widget] = {
        bool: "checkbox",
        int: "number",
        float: "number",
        Duration: "duration",
        str: "text",
    }
    return simple.get(plain, "json"), ()


def text_of(entry: FormInput, value: Any) -> str:
    """A value as it stands in the input. `value_of` gives the value back: what the short form of a list or of pairs
    can't say, such as a text of several lines, is written as JSON."""
    if value is None:
        return ""
    text = _short_text(entry, value)
    if entry.widget in ("words", "lines", "pairs") and value and not _means(entry, text, value):
        return _pretty(value)
    return text


def _means(entry: FormInput, text: str, value: Any) -> bool:
    try:
        return bool(value_of(entry, text) == value)
    except FieldMistake:
        return False


def _short_text(entry: FormInput, value: Any) -> str:
    match entry.widget:
        case "checkbox":
            return "on" if value else ""
        case "words":
            return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        case "lines":
            return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        case "pairs":
            gap = " " if entry.divider == ":" else ""
            pairs = value.items() if isinstance(value, dict) else ()
            return "\n".join(f"{name}{entry.divider}{gap}{text}" for name, text in pairs)
        case "json":
            return value if isinstance(value, str) and not _is_json(value) else _pretty(value)
    return str(to_builtins(value))


def value_of(entry: FormInput, text: str) -> Any:
    """What the text means. None: it is empty, so the field is left out. Raises FieldMistake."""
    if entry.widget == "checkbox":
        return bool(text)
    if not text.strip():
        return None
    if entry.widget in ("words", "lines", "pairs") and (written := _as_json(entry, text)) is not None:
        return written
    match entry.widget:
        case "number":
            return _number(entry, text.strip())
        case "duration" | "choice":
            return text.strip()
        case "words":
            return [word for part in text.split(",") if (word := part.strip())]
        case "lines":
            return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
        case "pairs":
            return dict(_pair(entry, line) for line in text.replace("\r\n", "\n").split("\n") if line.strip())
        case "json":
            return _parsed(entry, text)
        case "code":
            return text.replace("\r\n", "\n")
    return text.strip()


class FieldMistake(Exception):
    """A text that its input can't take."""

    def __init__(self, problem: FieldProblem) -> None:
        self.problem = problem
        super().__init__(problem.message)


def _number(entry: FormInput, text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise _mistake(entry, "not a number", text, accepted(float)) from None


def _as_json(entry: FormInput, text: str) -> Any:
    """A list or pairs that were written as JSON; None if they were not."""
    kind, texts = (dict[str, str], "{") if entry.widget == "pairs" else (list[str], "[")
    if not text.lstrip().startswith(texts):
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _pair(entry: FormInput, line: str) -> tuple[str, str]:
    name, found, value = line.partition(entry.divider)
    if not found or not name.strip():
        raise _mistake(entry, "not a name and a value", line[:200], f"name{entry.divider} value, one on each line")
    return name.strip(), value.strip()


def _parsed(entry: FormInput, text: str) -> Any:
    """JSON. What does not even begin like an object or a list may be plain text, where the field takes any value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if entry.path == "params" or text.lstrip()[:1] in "{[":
            raise _mistake(entry, f"not valid JSON: {error}", text[:200], "JSON") from None
        return text


def _mistake(entry: FormInput, message: str, given: str, wanted: str) -> FieldMistake:
    return FieldMistake(FieldProblem(path=entry.path, message=message, given=given, accepted=wanted))


def _is_json(text: str) -> bool:
    """Whether a text would be read as something else than itself."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.lstrip()[:1] in ("{", "[") or not text.strip()
    return True


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(to_builtins(value)), indent=2).decode()
