"""Jobs of APScheduler 3: of a scheduler in Python, of an export, or of a job store in SQLite."""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import math
import pickle
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import Unreadable
from onthedot.importers.apscheduler_trigger import schedules_of
from onthedot.importers.cron_sets import NotExpressible
from onthedot.importers.findings import ImportedJobs
from onthedot.importers.python_source import json_problem, load_python

__all__ = ["import_apscheduler"]

SCHEDULERS = ("background", "blocking", "asyncio", "gevent", "tornado", "twisted", "qt")
DEFAULT_GRACE = 1
"""Seconds: `misfire_grace_time` where nobody has set it."""


class _Job(msgspec.Struct):
    """What is needed of a job, pending or stored."""

    id: str
    name: str
    trigger: Any
    function: Any  # a reference "module:name", or the function itself
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    coalesce: bool = True
    max_instances: int = 1
    misfire_grace_time: int | None = DEFAULT_GRACE
    paused: bool = False


def import_apscheduler(reference: str, found: ImportedJobs, *, table: str = "apscheduler_jobs") -> None:
    """`reference`: a Python file, `module:scheduler`, the .json of an export, or `sqlite:///PATH` of a job store."""
    if reference.startswith("sqlite:///") or _is_sqlite(reference):
        jobs = _stored(Path(reference.removeprefix("sqlite:///")), table)
    elif reference.endswith(".json"):
        jobs = _exported(Path(reference))
    else:
        jobs = _pending(reference)
    for job in jobs:
        with found.listed_if_wrong(f"job {job.id}"):
            _add(found, job)
    if found.jobs:
        found.need(
            "functions of these jobs: `onthedot serve --jobs FILE` registers them; their modules must be importable "
            "from the directory of the jobs file, or where the node is started"
        )


def _is_sqlite(reference: str) -> bool:
    with suppress(OSError), Path(reference).open("rb") as file:
        return file.read(15) == b"SQLite format 3"
    return False


def _stored(path: Path, table: str) -> list[_Job]:
    """Jobs are stored as pickles, whose code is that of the user: APScheduler itself reads them the same way."""
    _require()
    sys.path.insert(0, str(Path.cwd()))
    if not path.is_file():
        raise Unreadable(f"{path}: no such file")
    if not table.isidentifier():
        raise Unreadable(f"{table!r} is not the name of a table")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            query = f"SELECT id, next_run_time, job_state FROM {table} ORDER BY next_run_time, id"  # noqa: S608
            rows = database.execute(query).fetchall()
    except sqlite3.Error as error:
        raise Unreadable(f"{path}: not a job store of APScheduler: {error}") from None
    jobs = []
    for job_id, next_run_time, state in rows:
        try:
            kept = pickle.loads(state)  # noqa: S301  # the user's own job store
        except Exception as error:
            raise Unreadable(f"{path}: job {job_id}: can't be read: {type(error).__name__}: {error}") from None
        jobs.append(_of_state(kept, paused=next_run_time is None))
    return jobs


def _of_state(kept: Mapping[str, Any], *, paused: bool) -> _Job:
    """A job as APScheduler writes it down."""
    return _Job(
        id=str(kept["id"]),
        name=str(kept["name"]),
        trigger=kept["trigger"],
        function=kept["func"],
        args=tuple(kept["args"]),
        kwargs=dict(kept["kwargs"]),
        coalesce=kept["coalesce"],
        max_instances=kept["max_instances"],
        misfire_grace_time=kept["misfire_grace_time"],
        paused=paused,
    )


def _exported(path: Path) -> list[_Job]:
    """What `scheduler.export_jobs` wrote: JSON, in which some values are pickles and some are objects."""
    _require()
    sys.path.insert(0, str(Path.cwd()))
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_hook=_object)
        version, states = data["version"], data["jobs"]
        jobs = [_of_state(state, paused=state["next_run_time"] is None) for state in states]
    except OSError as error:
        raise Unreadable(f"{path}: can't be read: {error.strerror}") from None
    except Exception as error:
        raise Unreadable(f"{path}: not an export of APScheduler: {type(error).__name__}: {error}") from None
    if version != 1:
        raise Unreadable(f"{path}: version {version!r} of an export is not known")
    return jobs


def _object(found: dict[str, Any]) -> Any:
    if text := found.get("__apscheduler_pickle__"):
        return pickle.loads(base64.b64decode(text))  # noqa: S301  # the user's own export
    if (name := found.get("__apscheduler_class__")) and (state := found.get("__apscheduler_state__")):
        from apscheduler.util import ref_to_obj

        made = object.__new__(ref_to_obj(name))
        made.__setstate__(state)
        return made
    return found


def _require() -> None:
    try:
        importlib.import_module("apscheduler.triggers.cron")
    except ImportError:
        raise Unreadable("APScheduler 3 is not installed here: run `pip install 'apscheduler<4'`") from None


def _pending(reference: str) -> list[_Job]:
    _require()
    from apscheduler.schedulers.base import BaseScheduler

    with _not_started(BaseScheduler):
        source = load_python(reference)
    chosen = source.chosen
    named = [chosen] if chosen is not None else list(vars(source.module).values())
    schedulers = list({id(each): each for each in named if isinstance(each, BaseScheduler)}.values())
    if not schedulers:
        raise Unreadable(
            f"{reference}: no scheduler of APScheduler 3 found as a variable of the module; if it is made in a "
            "function or below `if __name__ == '__main__'`, make it at the top of the module, or import its job store"
        )
    return [_of_pending(job, scheduler) for scheduler in schedulers for job in scheduler.get_jobs()]


@contextmanager
def _not_started(base: type) -> Iterator[None]:
    """Importing must not run jobs: `start` does nothing meanwhile, in every kind of scheduler."""
    for name in SCHEDULERS:
        with suppress(ImportError):
            importlib.import_module(f"apscheduler.schedulers.{name}")
    kinds: list[type] = [base]
    for kind in kinds:
        below: list[type] = kind.__subclasses__()
        kinds += [each for each in below if each not in kinds]
    originals: list[tuple[type, Callable[..., Any]]] = [
        (kind, vars(kind)["start"]) for kind in kinds if "start" in vars(kind)
    ]
    try:
        for kind, _ in originals:
            setattr(kind, "start", lambda self, *args, **kwargs: None)  # noqa: B010
        yield
    finally:
        for kind, start in originals:
            setattr(kind, "start", start)  # noqa: B010


def _of_pending(job: Any, scheduler: Any) -> _Job:
    """A job that waits for the start has no values for what was left out: they come from the scheduler."""
    defaults = scheduler._job_defaults

    def given(name: str) -> Any:
        return getattr(job, name) if hasattr(job, name) else defaults[name]

    return _Job(
        id=str(job.id),
        name=str(job.name),
        trigger=job.trigger,
        function=job.func_ref or job.func,
        args=tuple(job.args),
        kwargs=dict(job.kwargs),
        coalesce=given("coalesce"),
        max_instances=given("max_instances"),
        misfire_grace_time=given("misfire_grace_time"),
        paused=hasattr(job, "next_run_time") and job.next_run_time is None,
    )


def _add(found: ImportedJobs, job: _Job) -> None:
    item = f"job {job.id}"
    lost: list[tuple[str, str]] = []
    reference = _reference(job.function)
    params = _params(job, reference)
    schedules = list(schedules_of(job.trigger, now=found.now, lost=lost))
    readable = job.name if len(job.id) == 32 and job.id.isalnum() else job.id  # an ID that nobody chose is a UUID
    for fitted in schedules:
        key = found.free_key(readable)
        policy = _policy(job, fitted.jitter)
        fields = {
            "key": key,
            "name": job.name,
            "schedule": fitted.schedule,
            "target": {"type": "function", "function": reference},
            "policy": policy,
            "params": params,
            "paused": job.paused or None,
        }
        if not found.add(item, fields):
            continue
        for what, reason in lost:
            found.lose(item, what, reason, key=key)
        for difference in fitted.differences:
            found.lose(item, "the day on which clocks change", difference, key=key)
        if job.max_instances > 1:
            reason = "a run that would exceed it waits (`max_running`) instead of being skipped"
            found.lose(item, "max_instances", reason, key=key)


def _reference(function: Any) -> str:
    reference = function
    if not isinstance(reference, str):
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        reference = f"{module}:{name}"
    module, _, name = reference.partition(":")
    if (
        not module
        or module == "None"
        or not all(part.isidentifier() for part in (*module.split("."), *name.split(".")))
    ):
        raise NotExpressible(f"{reference}: only a function that can be imported by its name can be called")
    if module == "__main__":
        raise NotExpressible(f"{reference}: the module is the main program: its file must be named")
    return reference


def _params(job: _Job, reference: str) -> dict[str, Any]:
    """Functions are called by keywords: positional arguments get the names of their parameters."""
    params = dict(job.kwargs)
    if job.args:
        try:
            module, _, name = reference.partition(":")
            function: Any = importlib.import_module(module)
            for part in name.split("."):
                function = getattr(function, part)
            bound = inspect.signature(function).bind(*job.args, **job.kwargs)
        except Exception as error:
            raise NotExpressible(f"names of the positional arguments of {reference} are not known: {error}") from None
        params = {}
        for name, value in bound.arguments.items():
            match bound.signature.parameters[name].kind:
                case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.POSITIONAL_ONLY:
                    raise NotExpressible(f"{reference} takes {name!r} by position only, and jobs call it by keywords")
                case inspect.Parameter.VAR_KEYWORD:
                    params |= value
                case _:
                    params[name] = value
    if (problem := json_problem(params)) is not None:
        raise NotExpressible(f"arguments: {problem}")
    return params


def _policy(job: _Job, jitter: float | None) -> dict[str, Any]:
    policy: dict[str, Any] = {"retry": {"attempts": 1}}
    if job.max_instances == 1:
        policy["overlap"] = "skip"
    else:
        policy["max_running"] = job.max_instances
    if job.misfire_grace_time == DEFAULT_GRACE:
        policy["catch_up"] = "skip"
    else:
        policy["catch_up"] = "latest" if job.coalesce else "all"
        if job.misfire_grace_time is not None:
            policy["expires_in"] = f"{job.misfire_grace_time}s"
    if jitter:
        policy["jitter"] = f"{math.ceil(jitter * 1000)}ms"
    return policy
