"""The form for a job: create one, change one, try it out.

What is typed is checked as it is typed, by the same code that saves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of
from onthedot.api.http.query_params import integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB
from onthedot.errors import Conflict, FieldProblem, Invalid, VersionMismatch
from onthedot.model.decoding import decode_loose, to_builtins
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec, JobView
from onthedot.model.labels import type_of
from onthedot.model.schedule import Schedule
from onthedot.service import Service
from onthedot.timing.zones import zone_names
from onthedot.web import words
from onthedot.web.definition import loose_job
from onthedot.web.form.checked import FormCheck, check_form
from onthedot.web.form.differences import FieldChange, conflicts, merge
from onthedot.web.form.fields import FIRST, KINDS_OF_SCHEDULE, MORE, SCHEDULE, policy_inputs, target_inputs
from onthedot.web.form.reading import SCHEDULE_KIND, TARGET_KIND, loose_of, pretty, texts_of
from onthedot.web.forms import Form, read_form
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes"]

LARGEST = 512 * KIB
FROM = (integer("from", "Id of a job to copy", 1, 2**63 - 1), text("tz", "Time zone of the schedule", longest=100))
CONTROLS = ("base", "version", "mode", "json", "act")


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """The form as it was sent: the inputs, or the JSON of the whole job."""

    texts: dict[str, str]
    base: dict[str, Any]
    version: int | None
    as_json: bool
    json_text: str

    def loose(self) -> dict[str, Any]:
        """The JSON of the job; Invalid if what was typed can't be read."""
        return _object(self.json_text) if self.as_json else loose_of(self.texts, self.base)


@page("/jobs/new", query=FROM)
async def new_job(request: Request) -> HttpResponse:
    """The form for a new job."""
    asked = asked_of(request, FROM)
    zone = asked["tz"] or service_of(request).settings.default_tz
    loose: dict[str, Any] = {"schedule": {"tz": zone}, "target": {"type": next(iter(target_inputs()))}}
    if asked["from"] is not None:
        copied = await service_of(request).get_job(tenant_of(request), asked["from"])
        loose = {**loose_job(copied), "key": None, "name": f"Copy of {words.title(copied)}"}
        loose["schedule"].setdefault("tz", copied.schedule.tz)
    return await _form(request, _begun(loose, None), FormCheck(), None)


@page("/jobs/{job_id}/edit")
async def edit_job(request: Request) -> HttpResponse:
    """The form for a job that exists."""
    asked_of(request, ())
    job = await service_of(request).get_job(tenant_of(request), job_id_of(request))
    loose = loose_job(job)
    checked = await check_form(service_of(request), tenant_of(request), loose, job.id)
    return await _form(request, _begun(loose, job.version), checked, job)


@action("/jobs/new", limit=LARGEST)
async def save_new_job(request: Request) -> HttpResponse:
    """Create the job, or show what is wrong with it."""
    return await _answer(request, None)


@action("/jobs/{job_id}/edit", limit=LARGEST)
async def save_job(request: Request) -> HttpResponse:
    """Change the job, or show what is wrong with the change."""
    return await _answer(request, await service_of(request).get_job(tenant_of(request), job_id_of(request)))


async def _answer(request: Request, job: JobView | None) -> HttpResponse:
    form = await read_form(request, *_names())
    typed, act = _typed(form), form.text("act", "check")
    refused = 422 if act in ("save", "test") else 200
    try:
        loose = typed.loose()
    except Invalid as invalid:
        return await _form(request, typed, FormCheck(problems=invalid.problems), job, status=refused)
    if act in ("json", "form"):  # the same job, shown the other way
        typed = msgspec.structs.replace(typed, as_json=act == "json", texts=texts_of(loose), json_text=pretty(loose))
    checked = await check_form(service_of(request), tenant_of(request), loose, None if job is None else job.id)
    if not typed.as_json:
        checked = _at_chosen_time(checked, typed)
    if checked.spec is None or act not in ("save", "test"):
        return await _form(request, typed, checked, job, status=refused)
    spec = checked.spec
    try:
        if act == "test":
            return await _try_out(request, spec)
        return await _save(request, spec, typed, job)
    except Invalid as invalid:
        checked = msgspec.structs.replace(checked, problems=invalid.problems, spec=None)
    except VersionMismatch:
        assert job is not None
        # the form leaves out what has its default; that is no change of who typed
        told = {**loose, "policy": to_builtins(spec.policy)}
        return await _merged(request, typed, told, job)
    except Conflict as conflict:
        problem = FieldProblem(path="key" if "key" in str(conflict) else "", message=str(conflict))
        checked = msgspec.structs.replace(checked, problems=(problem,), spec=None)
    return await _form(request, typed, checked, job, status=refused)


async def _save(request: Request, spec: JobSpec, typed: Typed, job: JobView | None) -> HttpResponse:
    service, tenant = service_of(request), tenant_of(request)
    if job is None:
        saved = await service.create_job(tenant, spec)
        return done(request, f"Created {words.title(saved)}", f"/jobs/{saved.id}")
    saved = await service.replace_job(tenant, job.id, spec, if_match=typed.version)
    told = f"No changes to {words.title(saved)}" if saved.version == typed.version else f"Saved {words.title(saved)}"
    return done(request, told, f"/jobs/{job.id}")


async def _try_out(request: Request, spec: JobSpec) -> HttpResponse:
    """Run the target once, as a job of its own: nothing of the typed job is saved."""
    once = msgspec.structs.replace(
        spec,
        key=None,
        name=f"Test of {spec.name or spec.key or 'a new job'}"[:500],
        schedule=Schedule(in_=Duration(1)),
        policy=msgspec.structs.replace(spec.policy, jitter=Duration(0), expires_in=None, overlap="allow"),
        tags=list(dict.fromkeys([*spec.tags, "test"]))[-50:],
        paused=False,
        on_success=msgspec.UNSET,
        on_failure=msgspec.UNSET,
        on_finish=msgspec.UNSET,
        alerts=msgspec.UNSET,
        objective=msgspec.UNSET,
    )
    made = await service_of(request).create_job(tenant_of(request), once)
    return done(request, "Running it once, as a job of its own", f"/jobs/{made.id}")


async def _merged(request: Request, typed: Typed, yours: dict[str, Any], job: JobView) -> HttpResponse:
    """Somebody else changed the job since the form was opened: both changes in one form, and what each did."""
    theirs = loose_job(job)
    changes = conflicts(typed.base, theirs, yours)
    both = merge(typed.base, theirs, yours)
    begun = msgspec.structs.replace(_begun(theirs, job.version), texts=texts_of(both), json_text=pretty(both))
    begun = msgspec.structs.replace(begun, as_json=typed.as_json)
    return await _form(request, begun, FormCheck(), job, changes, status=409)


async def _form(
    request: Request,
    typed: Typed,
    checked: FormCheck,
    job: JobView | None,
    changes: list[FieldChange] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`changes`: what somebody else and who typed this changed meanwhile."""
    return await show(
        request,
        "job_form.html",
        status=status,
        job=job,
        title=f"Edit {words.title(job)}" if job is not None else "New job",
        at="/jobs/new" if job is None else f"/jobs/{job.id}/edit",
        typed=typed,
        texts=typed.texts,
        began=pretty(typed.base),
        checked=checked,
        elsewhere=_elsewhere(checked, typed),
        refused=status == 422,
        changes=changes or [],
        first=FIRST,
        schedule=SCHEDULE,
        schedule_kinds=KINDS_OF_SCHEDULE,
        targets=target_inputs(),
        offered=await _offered(service_of(request)),
        policy=policy_inputs(),
        more=MORE,
        zones=sorted(zone_names()),
    )


async def _offered(service: Service) -> frozenset[str]:
    """The kinds of target that live nodes run."""
    return frozenset(
        type_of(offer) for node in await service.list_nodes() if node.state == "alive" for offer in node.offers
    )


def _at_chosen_time(checked: FormCheck, typed: Typed) -> FormCheck:
    """That a schedule has no time is told where it is to be typed."""
    chosen = f"schedule.{typed.texts.get(SCHEDULE_KIND, '')}"
    entry = next((each for each in SCHEDULE if each.path == chosen), SCHEDULE[0])
    problems = tuple(
        msgspec.structs.replace(problem, path=entry.path, accepted=None) if problem.path == "schedule" else problem
        for problem in checked.problems
    )
    return msgspec.structs.replace(checked, problems=problems)


def _elsewhere(checked: FormCheck, typed: Typed) -> list[FieldProblem]:
    """Problems that no input of the form shows."""
    shown = {entry.path for entry in (*FIRST, *SCHEDULE, *policy_inputs(), *MORE)}
    shown |= {entry.path for entry in target_inputs().get(typed.texts.get(TARGET_KIND, ""), ())}
    at_inputs = {id(problem) for path in shown if (problem := checked.at(path)) is not None}
    if typed.as_json:
        return list(checked.problems)
    return [problem for problem in checked.problems if id(problem) not in at_inputs]


def _begun(loose: Mapping[str, Any], version: int | None) -> Typed:
    clean = {name: value for name, value in loose.items() if value is not None}
    return Typed(texts=texts_of(clean), base=clean, version=version, as_json=False, json_text=pretty(clean))


def _typed(form: Form) -> Typed:
    version = form.text("version")
    base = _object(form.text("base", "{}"))
    texts = {name: (form.many(name) or [""])[-1] for name in _names() if name not in CONTROLS}
    as_json = form.text("mode") == "json"
    json_text = (form.many("json") or [""])[-1]
    if as_json:
        texts = texts_of(base) | {name: text for name, text in texts.items() if text}
    return Typed(
        texts=texts,
        base=base,
        version=int(version) if version.isdecimal() else None,
        as_json=as_json,
        json_text=json_text,
    )


def _object(raw: str) -> dict[str, Any]:
    try:
        value = decode_loose(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Invalid.one("json", f"not valid JSON: {error}", accepted="the JSON of a job") from None
    if not isinstance(value, dict):
        raise Invalid.one("json", "not an object", accepted="the JSON of a job")
    return value


def _names() -> tuple[str, ...]:
    of_targets = chain.from_iterable(target_inputs().values())
    inputs = (*FIRST, *SCHEDULE, *policy_inputs(), *MORE, *of_targets)
    return (*(entry.name for entry in inputs), SCHEDULE_KIND, TARGET_KIND, *CONTROLS)


routes: list[Any] = [new_job, edit_job, save_new_job, save_job]
