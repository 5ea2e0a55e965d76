"""The fenced code blocks of the manual, and the commands of those that are for a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Block", "Command", "blocks_of", "commands_of", "pages", "shell_text"]

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)(`{3,}|~{3,})([^`]*)$")
NAMED = re.compile(r"<!-- file: (\S+) -->")
COMMENT = re.compile(r"# ([\w-]+\.(?:toml|ya?ml|py|txt))")
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
KEYWORDS = ("do", "done", "then", "else", "fi", "sudo")
SEPARATORS = ("&&", "||", ";;", ";", "|", "&", "(", ")")


class Block(NamedTuple):
    """`page`: relative to the repository. `line`: of the fence. `file`: the name it is to be saved under, or ""."""

    page: str
    line: int
    language: str
    text: str
    file: str = ""

    @property
    def first(self) -> str:
        """What the block is known by in tables: its first line."""
        return self.text.strip().partition("\n")[0].strip()

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """One program that a shell starts. `stdin`: of a here-document. `out`: the file that its output goes to."""

    words: tuple[str, ...]
    variables: dict[str, str]
    stdin: str | None = None
    out: str | None = None


def pages() -> list[str]:
    found = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(page.relative_to(ROOT)) for page in found]


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """All of them, in order; also those inside lists."""
    lines = ((ROOT / page).read_text("utf-8") if text is None else text).split("\n")
    found, at = [], 0
    while at < len(lines):
        opened = FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        indent, fence, language = opened[1], opened[2], opened[3].strip()
        end = next(
            (n for n in range(at + 1, len(lines)) if re.fullmatch(rf" *{fence[0]}{{{len(fence)},}} *", lines[n])), None
        )
        if end is None:
            raise ValueError(f"{page}:{at + 1}: the block has no end")
        inside = "".join(line.removeprefix(indent) + "\n" for line in lines[at + 1 : end])
        named = NAMED.fullmatch(lines[at - 1].strip()) or COMMENT.fullmatch(inside.partition("\n")[0].strip())
        found.append(Block(page, at + 1, language, inside, named[1] if named else ""))
        at = end + 1
    return found


def shell_text(block: Block) -> str:
    """What is typed in it: of a console the lines after `$ `, and commands that its output advises."""
    if block.language != "console":
        return block.text
    typed = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            typed.append(line[2:])
        elif advised := re.search(r"(?:^|\s)(onthedot [a-z].*)$", line):
            typed.append(advised[1])
    return "".join(f"{line}\n" for line in typed)


def commands_of(text: str) -> list[Command]:
    """As a POSIX shell reads it: quotes, continuations, comments, here-documents; also inside $(…) and `sh -c '…'`.

    Variables stay as they are written. ValueError for what a shell would not read.
    """
    found: list[Command] = []
    for simple, stdin in _Reader(text).simple_commands():
        words, out = _without_redirections(simple)
        for word in words:
            for inner in _substituted(word):
                found += commands_of(inner)
        variables: dict[str, str] = {}
        while words and (words[0] in KEYWORDS or ASSIGNED.fullmatch(words[0])):
            if assigned := ASSIGNED.fullmatch(words[0]):
                variables[assigned[1]] = assigned[2]
            words = words[1:]
        if words[:1] in (["export"], ["for"]):
            variables |= {m[1]: m[2] for word in words[1:] if (m := ASSIGNED.fullmatch(word))}
            words = []
        if words or variables:
            found.append(Command(tuple(words), variables, stdin, out))
        if "sh" in words and words[words.index("sh") + 1 : words.index("sh") + 2] == ["-c"]:
            found += commands_of(words[words.index("sh") + 2])
    return found


def _without_redirections(words: list[str]) -> tuple[list[str], str | None]:
    kept: list[str] = []
    out: str | None = None
    skip = False
    for place, word in enumerate(words):
        if skip:
            skip = False
        elif word in ("\0>", "\0>>"):
            out, skip = (words[place + 1] if place + 1 < len(words) else None), True
            if out is None:
                raise ValueError("nothing behind >")
            if kept and kept[-1] in ("1", "2"):
                kept.pop()
        else:
            kept.append(word)
    return kept, out


def _substituted(word: str) -> Iterator[str]:
    """What stands in $(…)."""
    at = word.find("$(")
    while at >= 0:
        end = _closing(word, at + 2)
        yield word[at + 2 : end]
        at = word.find("$(", end)


def _closing(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
        at += 1
    raise ValueError("$( without )")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text.replace("\\\n", " "), 0
        self._waiting: list[str] = []  # here-documents whose text begins on the next line

    def simple_commands(self) -> Iterator[tuple[list[str], str | None]]:
        words: list[str] = []
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == "\n":
                self._at += 1
                stdin = self._documents()
                if words:
                    yield words, stdin
                words = []
            elif here in " \t":
                self._at += 1
            elif here == "#":
                self._at = self._line_end()
            elif separator := next((each for each in SEPARATORS if self._text.startswith(each, self._at)), None):
                self._at += len(separator)
                if words:
                    yield words, None
                words = []
            elif self._text.startswith("<<", self._at):
                self._at += 2
                while self._text[self._at] == " ":
                    self._at += 1
                self._waiting.append(self._word())
            elif here in "<>":
                sign = ">>" if self._text.startswith(">>", self._at) else here
                self._at += len(sign)
                if self._text.startswith("&", self._at):  # 2>&1
                    self._at += 2
                    if words and words[-1] in ("1", "2"):
                        words.pop()
                else:
                    words.append("\0" + sign)
            else:
                words.append(self._word())
        if self._waiting:
            raise ValueError("a here-document without text")
        if words:
            yield words, None

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _documents(self) -> str | None:
        document = None
        for mark in self._waiting:
            lines = []
            while True:
                if self._at >= len(self._text):
                    raise ValueError(f"a here-document without {mark}")
                end = self._line_end()
                line, self._at = self._text[self._at : end], end + 1
                if line.strip() == mark:
                    break
                lines.append(line)
            document = "".join(f"{line}\n" for line in lines)
        self._waiting = []
        return document

    def _word(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            here = self._text[self._at]
            if here in " \t\n;|&<>()":
                break
            if here == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise ValueError("' without an end")
                parts.append(self._text[self._at + 1 : end])
                self._at = end + 1
            elif here == '"':
                parts.append(self._quoted())
            elif here == "\\":
                parts.append(self._text[self._at + 1])
                self._at += 2
            elif self._text.startswith("$(", self._at):
                parts.append(self._substitution())
            elif self._text.startswith("${", self._at):
                end = self._text.index("}", self._at) + 1
                parts.append(self._text[self._at : end])
                self._at = end
            else:
                parts.append(here)
                self._at += 1
        return "".join(parts)

    def _substitution(self) -> str:
        begin = self._at
        self._at = _closing(self._text, begin + 2) + 1
        return self._text[begin : self._at]

    def _quoted(self) -> str:
        self._at += 1
        parts: list[str] = []
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == '"':
                self._at += 1
                return "".join(parts)
            if here == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`"):
                parts.append(self._text[self._at + 1])
                self._at += 2
            elif self._text.startswith("$(", self._at):
                parts.append(self._substitution())
            else:
                parts.append(here)
                self._at += 1
        raise ValueError('" without an end')
