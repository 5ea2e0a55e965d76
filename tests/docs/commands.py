"""Commands that the manual shows, checked without a server: by the real command line, the operations of the API, the
Makefile, and the files of this repository."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import jsonschema_rs
import pytest
import typer
import yaml

from onthedot.api.app import ROUTES
from onthedot.api.http.bodies import media_of
from onthedot.api.http.query_params import read_query
from onthedot.api.openapi.document import PATH_PARAMS
from onthedot.api.operations import Operation
from onthedot.brokers.reader import Received
from onthedot.cli.app import command_line
from onthedot.client.transport import Transport
from onthedot.clock import SystemClock
from onthedot.intake.commands import read_all
from onthedot.model.checks import check_spec
from onthedot.model.decoding import convert, decode_json, to_builtins
from onthedot.model.job import JobSpec
from onthedot.service.merge_patch import merge_patch, patched
from onthedot.settings import load_settings
from onthedot.settings.sources import BARE_NAMES, BARE_PARTS, CLIENT_NAMES, PARTS, RUN_NAMES
from onthedot.settings.values import PARSERS
from onthedot.timing import check_schedule
from onthedot.web import routes as web_pages
from tests.docs.blocks import ROOT, Command

__all__ = [
    "COMPOSE",
    "OLD_JOB",
    "PROGRAMS",
    "REFUSED",
    "SETTINGS",
    "SHOWN",
    "THEIRS",
    "Checker",
    "Wrong",
    "check_helm_values",
    "check_job",
    "check_message",
    "check_variable",
    "offline",
    "require",
]

PROGRAMS = (
    ".",
    "cat",
    "echo",
    "git",
    "grep",
    "install",
    "jq",
    "mkdir",
    "nats",
    "openssl",
    "printf",
    "psql",
    "tee",
    "useradd",
)
"""Not ours, and told nothing that this repository has."""
THEIRS = ("/usr/local/bin/backup", "apparmor")
"""What a reader has, or the system."""
SHOWN = {
    "postgresql://…": "postgresql://db.example/onthedot",
    "sha256:5f3a…": "sha256:" + "5f3a" * 16,
    "$id": "sha256:" + "5f3a" * 16,
    "otd_…": "otd_" + "0" * 64,
    "••••••": "whsec_" + "A" * 43 + "=",
    "$OLD": "whsec_" + "B" * 43 + "=",
    "$NEW": "whsec_" + "C" * 43 + "=",
    "$n": "1",
    "$?": "0",
    "PING_URL": "http://127.0.0.1:8000/ping/token",
    "${CALLBACK/complete/progress}": "http://127.0.0.1:8000/v1/runs/1-1767225600000/progress?token=a",
    "$CALLBACK": "http://127.0.0.1:8000/v1/runs/1-1767225600000/complete?token=a",
}
"""What stands for something that only the reader has, and what it could be."""
STAY = ("doctor", "echo", "import", "migrate", "migrate-store", "backup", "restore", "serve", "witness")
"""Commands that speak with no server: their options are read, and that is all."""
REFUSED = ('{"op": "explode"}',)
"""Messages that a page sends to show what happens then."""
API_PORTS = (None, 8000)
MONITORED = {9090: ("/healthz", "/readyz", "/metrics"), 9110: ("/healthz", "/readyz", "/metrics")}
FILES = re.compile(r"(?:\./)?(?:deploy|examples|docs|scripts|tests|src|bench|proof|requirements)/\S+")
SETTINGS = {*PARSERS, *PARTS, *CLIENT_NAMES, *RUN_NAMES}
CHART = ROOT / "deploy" / "helm" / "onthedot"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MAKEFILE = (ROOT / "Makefile").read_text()
OLD_JOB: dict[str, Any] = {
    "schedule": {"every": "1h"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"},
    "policy": {"concurrency": {"group": "db", "limit": 1}},
}
"""The job that commands find, whatever they call it."""


class _Sent(Exception):
    """A request was right, and that is all there is to know."""


class Wrong(Exception):
    pass


def require(holds: object, why: str) -> None:
    if not holds:
        raise Wrong(why)


class Checker:
    """The commands of one page, in a directory that has the files the page writes. `tables` and `names`: what its
    settings files and its Python have said before."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tables: dict[str, Any] = {}
        self.names: set[str] = set()

    def check(self, command: Command) -> None:
        """Raises whatever is found wrong first."""
        for name, value in command.variables.items():
            check_variable(name, value)
        words = [self._real(word) for word in command.words]
        if not words:
            return
        for word in words[1:]:
            if FILES.fullmatch(word):
                require([*ROOT.glob(word.removeprefix("./"))], f"there is no {word}")
        if words[0].startswith("$("):  # checked for itself
            return
        name = Path(words[0]).name or words[0]  # "." has none
        if words[0] in THEIRS or name in PROGRAMS:
            return
        if checks := getattr(self, f"_{name.replace('-', '_').replace('.', '_')}", None):
            checks(words[1:])
        else:
            raise Wrong(f"{words[0]}: not a program that the manual speaks of; see PROGRAMS")

    def _real(self, word: str) -> str:
        for shown, real in SHOWN.items():
            word = word.replace(shown, real)
        require("…" not in word, f"{word!r} is cut short, and SHOWN does not say what it stands for")
        return word

    # ours

    def _onthedot(self, words: list[str]) -> None:
        leaf, path = _command_of(words)
        if "--store" in words or path[0] in STAY:
            given = _options_of(leaf, words)
            if path == ["serve"]:
                names = {"jobs": "jobs_file_path", "source": "jobs_source"}
                file = given.pop("settings")
                flags = {names.get(name, name): value for name, value in given.items() if value is not None}
                load_settings(flags, environ={}, file=file)
            return
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
            patch.setattr("sys.stdin", _Consent("y\n"))
            with contextlib.suppress(_Sent):
                ended = command_tree().main(words, "onthedot", standalone_mode=False)
                require(not ended, f"exit code {ended}")

    def _run_sh(self, words: list[str]) -> None:
        _check_scales(words)

    def _make(self, words: list[str]) -> None:
        targets = [word for word in words if "=" not in word]
        require(len(targets) == 1, "make: one target")
        recipe = re.search(rf"^{re.escape(targets[0])}:(?!=).*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
        require(recipe, f"make: there is no target {targets[0]}")
        assert recipe is not None
        module = re.search(r"-m (\S+)", recipe[1])
        for word in words:
            if "=" not in word:
                continue
            name, value = word.split("=", 1)
            require(
                re.search(rf"\$\((?:or \$\()?(?:if \$\()?{name}\b", recipe[0]), f"make {targets[0]} knows no {name}"
            )
            option = re.search(rf"(--[a-z-]+) \"?\$\((?:or \$\()?{name}\b", recipe[1])
            if module and option:
                _check_module(module[1], [option[1], value])

    def _python(self, words: list[str]) -> None:
        if words[:1] == ["-m"]:
            if words[1] != "venv":
                _check_module(words[1], words[2:])
            return
        require((self.directory / words[0]).exists(), f"the page writes no {words[0]}")

    _python3 = _python

    def _pip(self, words: list[str]) -> None:
        require(words[0] == "install", f"pip {words[0]}")
        for word in words[1:]:
            found = re.fullmatch(r"onthedot(?:\[([\w,]+)\])?|(\./\S+|dist/onthedot-\*\.whl)", word)
            require(found, f"pip install {word}")
            unknown = set(((found and found[1]) or "").split(",")) - {"", *EXTRAS}
            require(not unknown, f"there is no extra {unknown}")

    def _cp(self, words: list[str]) -> None:
        require(any(FILES.fullmatch(word) for word in words), "no file of ours is copied")

    # requests

    def _curl(self, words: list[str]) -> None:
        method, body, media, addresses = None, None, "", []
        rest = iter(words)
        for word in rest:
            if word in ("-X", "--request"):
                method = next(rest)
            elif word in ("-d", "--data", "--data-raw", "--json"):
                body = next(rest)
            elif word in ("-H", "--header"):
                name, colon, value = next(rest).partition(": ")
                require(colon, f"a header without a value: {name}")
                media = value if name.lower() == "content-type" else media
            elif word in ("-m", "--retry", "-o"):
                next(rest)
            elif word.startswith("-"):
                require(re.fullmatch("-[fsS]+", word), f"curl {word}")
            else:
                addresses.append(word)
        require(len(addresses) == 1, "curl: one address")
        check_request(method or ("GET" if body is None else "POST"), addresses[0], body, media)

    def _redis_cli(self, words: list[str]) -> None:
        if words[0] == "XADD":
            require(words[2] == "*", "XADD stream * field value")
            fields = dict(zip(words[3::2], words[4::2], strict=True))
            require(set(fields) <= {"id", "body", "key"}, f"fields {sorted(fields)}")
            if fields["body"] not in REFUSED:
                check_message(fields["body"])
        else:
            require(words[0] == "XRANGE", f"redis-cli {words[0]}")

    # what runs us

    def _docker(self, words: list[str]) -> None:
        if words[0] != "compose":
            require(words[0] in ("build", "run"), f"docker {words[0]}")
            for option, value in pairwise(words):
                if option == "-e":
                    check_variable(*value.split("=", 1))
            return
        verb, rest = words[1], words[2:]
        require(verb in ("up", "down", "exec", "logs"), f"docker compose {verb}")
        if verb != "exec":
            _check_scales(rest)
        named = [word for word in rest if not word.startswith("-") and "=" not in word]
        for service in named[:1] if verb == "exec" else named:
            require(service in COMPOSE, f"compose.yaml has no service {service}")
        if verb == "exec" and named[1] != "sh":  # whose text is read as commands of its own
            self.check(Command(tuple(rest[rest.index(named[0]) + 1 :]), {}))

    def _helm(self, words: list[str]) -> None:
        if words[:2] == ["repo", "add"]:
            return
        require(words[0] in ("install", "upgrade"), f"helm {words[0]}")
        values: dict[str, Any] = {}
        for option, value in pairwise(words):
            if option == "--set":
                path, given = value.split("=", 1)
                at = values
                *folders, last = path.split(".")
                for folder in folders:
                    at = at.setdefault(folder, {})
                at[last] = given
        check_helm_values(values)

    def _kubectl(self, words: list[str]) -> None:
        templates = "".join(file.read_text() for file in (CHART / "templates").iterdir())
        there = {f"{each['kind']}/{each['metadata']['name']}".lower() for each in _manifests()}
        for word in words:
            if literal := re.match(r"--from-literal=([\w-]+)=", word):
                require(f"key: {literal[1]}" in templates, f"the chart reads no {literal[1]} from its Secret")
            elif re.fullmatch(r"(service|deployment)/\S+", word):
                require(word in there, f"there is no {word}")

    def _systemctl(self, words: list[str]) -> None:
        units = [word for word in words if not word.startswith("-")]
        require(units[0] in ("daemon-reload", "enable", "reload"), f"systemctl {units[0]}")
        for unit in units[1:]:
            if unit not in THEIRS:
                _check_unit(unit)

    def _journalctl(self, words: list[str]) -> None:
        _check_unit(words[words.index("-u") + 1])


class _Consent(io.StringIO):
    """Somebody at a terminal who says yes."""

    def isatty(self) -> bool:
        return True


@cache
def command_tree() -> Any:
    return typer.main.get_command(command_line())


def _command_of(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and its name."""
    command, path = command_tree(), []
    rest = list(words[2:] if words[:1] == ["--ca"] else words)
    while rest and rest[0] in getattr(command, "commands", {}):
        path.append(rest.pop(0))
        command = command.commands[path[-1]]
    require(path, f"there is no command {' '.join(words[:2])}")
    return command, path


def _options_of(leaf: Any, words: Sequence[str]) -> dict[str, Any]:
    """As the command line reads them; nothing is done."""
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf, "callback", given.update)
        ended = command_tree().main(list(words), "onthedot", standalone_mode=False)
        require(not ended, f"exit code {ended}")
    return given


@contextlib.contextmanager
def offline(directory: Path) -> Iterator[None]:
    """Commands speak with a stand-in for the server: it knows one job, and checks each request. In this directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transport, "_exchange", _exchange)
        patch.setattr("onthedot.client.transport._trusting", lambda ca: True)
        patch.chdir(directory)
        for name in ("ONTHEDOT_URL", "ONTHEDOT_KEY", "ONTHEDOT_CA", "VISUAL", "EDITOR"):
            patch.delenv(name, raising=False)
        yield


async def _exchange(
    transport: Transport,
    method: str,
    path: str,
    query: Mapping[str, str],
    raw: bytes | None,
    headers: Mapping[str, str],
    tries: int,
) -> tuple[int, str, bytes]:
    asked = f"{path}?{urlencode(query)}" if query else path
    found = check_request(method, asked, None if raw is None else raw.decode(), headers.get("content-type", ""))
    if found is not None and found.name in ("get_job", "get_job_by_key"):
        job = to_builtins(convert(OLD_JOB, JobSpec))
        shown: dict[str, Any] = {
            "id": 1,
            "key": None,
            "name": None,
            "params": {},
            "tags": [],
            "paused": False,
            "version": 1,
        }
        times = {"next_run": None, "last_run": None, "created_at": "", "updated_at": ""}
        return (
            200,
            "application/json",
            json.dumps(shown | job | {"state": "active", "reason": None, "stats": {}} | times).encode(),
        )
    raise _Sent


@cache
def _operations() -> list[tuple[re.Pattern[str], Operation]]:
    """Literal paths first, as the router has them."""
    every = [endpoint.operation for endpoint in (*ROUTES, *web_pages)]
    every.sort(key=lambda declared: [part.startswith("{") for part in declared.path.split("/")])
    return [(re.compile(re.sub(r"\{(\w+)(?::\w+)?\}", r"(?P<\1>[^/]+)", each.path)), each) for each in every]


def check_request(method: str, address: str, body: str | None, media: str) -> Operation | None:
    """The operation that serves it; None for a port that is not the API's."""
    url = urlsplit(address)
    if url.port not in API_PORTS:
        require(url.path in MONITORED.get(url.port or 0, ()), f"nothing of ours answers {address}")
        return None
    served = [(found, each) for pattern, each in _operations() if (found := pattern.fullmatch(url.path))]
    require(served, f"there is no path {url.path}")
    same = [(found, each) for found, each in served if each.path == served[0][1].path and each.method == method]
    require(same, f"{url.path} does not accept {method}")
    (found, operation), *_ = same
    for name, value in found.groupdict().items():
        schema = PATH_PARAMS.get(name, {})
        right = value.isdecimal() if schema.get("type") == "integer" else re.search(schema.get("pattern", ""), value)
        require(right, f"{value!r} is not a valid {name}")
    read_query(url.query.encode(), operation.query)
    if operation.path.startswith("/ping/"):  # takes any text
        return operation
    require(body is None or operation.body is not None, f"{method} {url.path} takes no body")
    require(body is not None or operation.body is None or not operation.body_required, f"{url.path} wants a body")
    if body is not None:
        require(not media or media_of(media)[0] in operation.media, f"{url.path} does not take {media}")
        given = decode_json(body.encode(), Any)
        _check_body(operation, body, given)
    return operation


def _check_body(operation: Operation, body: str, given: Any) -> None:
    if operation.method == "PATCH":
        check_patch(given)
        return
    told = decode_json(body.encode(), operation.body)
    for spec in told if isinstance(told, list) else [told, *(getattr(told, "jobs", None) or ())]:
        if isinstance(spec, JobSpec):
            check_job(spec)
    if isinstance(given, dict) and isinstance(given.get("patch"), dict):
        check_patch(given["patch"])


def check_job(spec: JobSpec) -> None:
    check_spec(spec)
    check_schedule(spec.schedule, now=SystemClock().now_ms())


def check_patch(patch: dict[str, Any]) -> None:
    check_job(convert(patched(to_builtins(convert(OLD_JOB, JobSpec)), patch), JobSpec))


def check_message(text: str) -> None:
    """A message of intake."""
    (told,) = read_all("orders", [Received(body=text.encode(), tag=None, id="m1")])
    if isinstance(told, Exception):
        raise told
    if isinstance(spec := getattr(told.does, "job", None), JobSpec):
        check_job(spec)
    if isinstance(patch := getattr(told.does, "patch", None), dict):
        check_patch(patch)


def check_variable(name: str, value: str) -> None:
    setting = name.removeprefix("ONTHEDOT_")
    if setting != name:
        require(setting in SETTINGS, f"there is no setting {name}")
    elif name not in (*BARE_NAMES, *BARE_PARTS):  # the shell's own, or another program's
        return
    if setting in PARSERS and "$(" not in value and "…" not in value:
        PARSERS[setting](value)


def _check_scales(words: Sequence[str]) -> None:
    for option, value in pairwise(words):
        if option == "--scale":
            service, number = value.split("=")
            require(service in COMPOSE and number.isdecimal(), f"compose.yaml has no service {service}")
    unknown = {word for word in words if word.startswith("-")} - {"--scale", "-f", "-d", "--volumes"}
    require(not unknown, f"unknown options {unknown}")


def _check_unit(unit: str) -> None:
    file = re.sub(r"@.+$", "@", unit) + ".service"
    require((ROOT / "deploy" / "systemd" / file).exists(), f"there is no unit {unit}")


class _Parsed(Exception):
    pass


def _check_module(name: str, arguments: list[str]) -> None:
    """`python -m NAME …`: its own parser reads the arguments, and nothing is started."""
    require(find_spec(name), f"there is no module {name}")
    if not arguments:
        return
    package = (found := find_spec(name)) is not None and found.submodule_search_locations is not None
    program = import_module(f"{name}.__main__" if package else name)
    read = argparse.ArgumentParser.parse_args

    def parse(parser: argparse.ArgumentParser, *_: Any) -> None:
        read(parser, arguments)
        raise _Parsed

    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.setattr(argparse.ArgumentParser, "parse_args", parse)
        try:
            program.main()
        except _Parsed:
            return
        except SystemExit:
            raise Wrong(f"python -m {name}: {said.getvalue().strip()}") from None
    raise Wrong(f"python -m {name} takes no arguments")


@cache
def _manifests() -> list[Any]:
    text = (ROOT / "deploy" / "kubernetes" / "onthedot.yaml").read_text()
    return [each for each in yaml.safe_load_all(text) if each]


def check_helm_values(values: dict[str, Any]) -> None:
    """What the chart's schema allows."""
    every = merge_patch(yaml.safe_load((CHART / "values.yaml").read_text()), values)
    jsonschema_rs.Draft202012Validator(json.loads((CHART / "values.schema.json").read_text())).validate(every)
