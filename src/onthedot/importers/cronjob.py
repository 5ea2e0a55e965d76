"""CronJobs of Kubernetes, as YAML or JSON: single ones, several documents, or a List as kubectl prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from onthedot.errors import Unreadable
from onthedot.importers.clock_changes import fit_cron, next_of
from onthedot.importers.cron_sets import CronFields, NotExpressible
from onthedot.importers.findings import ImportedJobs
from onthedot.importers.robfig_cron import read_robfig
from onthedot.timing.zones import is_zone

__all__ = ["import_cronjobs"]

BACKOFF_LIMIT = 6  # the default of Kubernetes
_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)\Z")
_OVERLAP = {"Allow": "allow", "Forbid": "skip", "Replace": "replace"}
_HOUSEKEEPING = {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}
_SPEC = {
    "schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "jobTemplate",
} | _HOUSEKEEPING  # fmt: skip
_JOB = {"template", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"}
_POD = {
    "containers", "restartPolicy", "serviceAccountName", "serviceAccount", "activeDeadlineSeconds",
    "schedulerName", "dnsPolicy", "terminationGracePeriodSeconds", "automountServiceAccountToken", "enableServiceLinks",
}  # fmt: skip
_CONTAINER = {
    "name", "image", "command", "args", "env", "resources", "imagePullPolicy", "terminationMessagePath",
    "terminationMessagePolicy",
}  # fmt: skip
"""Fields that are carried over, or that mean nothing where they have their defaults."""


def import_cronjobs(text: str, found: ImportedJobs, *, tz: str = "UTC") -> None:
    """Add the CronJobs to `found`. `tz`: the zone of those that have none, which is the zone of the control plane."""
    objects = list(_objects(text))
    cronjobs = [each for each in objects if each.get("kind") == "CronJob"]
    names = [_name(each) for each in cronjobs]
    for other in objects:
        if other.get("kind") != "CronJob":
            found.lose(f"{other.get('kind')} {_name(other)}", "the object", "not a CronJob")
    for cronjob, name in zip(cronjobs, names, strict=True):
        space = _table(cronjob, "metadata").get("namespace")
        wanted = f"{space}.{name}" if space and names.count(name) > 1 else name
        with found.listed_if_wrong(f"CronJob {wanted}"):
            _add(found, cronjob, found.free_key(wanted), f"CronJob {wanted}", tz)
    if found.jobs:
        found.need(
            "a cluster: the table [kubernetes] in the settings, with `images` that allow the images of these jobs"
        )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable(f"not valid YAML: {error}") from None
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or "kind" not in document:
            raise Unreadable("not an object of Kubernetes: it has no `kind`")
        if str(document["kind"]).endswith("List"):
            items = document.get("items")
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict):
                    yield {"kind": str(document["kind"]).removesuffix("List") or None, **item}
        else:
            yield document


def _name(thing: dict[str, Any]) -> str:
    return str(_table(thing, "metadata").get("name") or "unnamed")


def _table(thing: dict[str, Any], *path: str) -> dict[str, Any]:
    for field in path:
        inner = thing.get(field)
        thing = inner if isinstance(inner, dict) else {}
    return thing


def _add(found: ImportedJobs, cronjob: dict[str, Any], key: str, item: str, tz: str) -> None:
    spec, job = _table(cronjob, "spec"), _table(cronjob, "spec", "jobTemplate", "spec")
    pod = _table(job, "template", "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise NotExpressible("its pod template has no container")
    lost: list[tuple[str, str]] = []
    schedule, differences = _schedule(spec, tz, found.now)
    container = containers[0]
    target: dict[str, Any] = {"type": "kubernetes", "image": container.get("image")}
    for field in ("command", "args"):
        if container.get(field):
            target[field] = [str(word) for word in container[field]]
    if env := dict(_env(container, lost)):
        target["env"] = env
    if resources := {name: value for name, value in _table(container, "resources").items() if value}:
        target["resources"] = {name: resources[name] for name in ("limits", "requests") if name in resources}
    if account := pod.get("serviceAccountName") or pod.get("serviceAccount"):
        target["service_account"] = account
    if space := _table(cronjob, "metadata").get("namespace"):
        target["namespace"] = space
    lost += _left_out(spec, job, pod, containers)
    fields = {
        "key": key,
        "schedule": schedule,
        "target": target,
        "policy": _policy(spec, job, pod),
        "paused": spec.get("suspend") is True or None,
    }
    if found.add(item, fields):
        for difference in differences:
            found.lose(item, "the day on which clocks change", difference, key=key)
        for what, reason in lost:
            found.lose(item, what, reason, key=key)


def _schedule(spec: dict[str, Any], tz: str, now: int) -> tuple[dict[str, Any], list[str]]:
    text = str(spec.get("schedule") or "").strip()
    zone = spec.get("timeZone")
    if (match := _PREFIX.match(text)) is not None:
        zone, text = zone or match[1], match[2]
    zone = zone or tz
    if not isinstance(zone, str) or not is_zone(zone):
        raise NotExpressible(f"time zone {zone!r} is not an IANA name")
    if text.startswith("@every "):
        return {"every": text.removeprefix("@every ").strip()}, []
    read = read_robfig(text)
    fitted = fit_cron(_texts(text, read), zone, _whenever_it_matches(read, zone), now=now)
    return {"cron": fitted.cron, "tz": zone}, fitted.differences


def _texts(text: str, read: CronFields) -> Iterator[str]:
    yield text
    yield from read.texts()


def _whenever_it_matches(read: CronFields, zone: str) -> Any:
    """The last way to write it has a range or a step, or the first one has: then each time that matches fires."""
    *_, last = read.texts()
    first = next(read.texts())
    return next_of(first if any(mark in " ".join(first.split()[:-3]) for mark in "*-") else last, zone)


def _policy(spec: dict[str, Any], job: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    """Kubernetes tries again after 10 s, 20 s, 40 s … up to 6 minutes."""
    limit = job.get("backoffLimit", BACKOFF_LIMIT)
    attempts = (limit if isinstance(limit, int) and limit >= 0 else BACKOFF_LIMIT) + 1
    policy: dict[str, Any] = {"retry": {"attempts": min(attempts, 1000)}}
    if attempts > 1:
        policy["retry"] |= {"backoff": "10s", "max": "6m"}
    if (overlap := _OVERLAP.get(str(spec.get("concurrencyPolicy")))) not in (None, "allow"):
        policy["overlap"] = overlap
    deadline = spec.get("startingDeadlineSeconds")
    if isinstance(deadline, int) and deadline > 0:
        policy["expires_in"] = f"{deadline}s"
    longest = job.get("activeDeadlineSeconds") or pod.get("activeDeadlineSeconds")
    if isinstance(longest, int) and longest > 0:
        policy["timeout"] = f"{longest}s"
    return policy


def _env(container: dict[str, Any], lost: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for variable in container.get("env") or ():
        name = str(variable.get("name"))
        if variable.get("valueFrom"):
            lost.append((f"env {name}", "its value comes from a Secret, a ConfigMap or the pod: use a template"))
            continue
        value = str(variable.get("value") or "")
        if "$(" in value:
            lost.append((f"env {name}", "$(…) is not replaced by other variables"))
        yield name, value


def _left_out(
    spec: dict[str, Any], job: dict[str, Any], pod: dict[str, Any], containers: list[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    template = "not a field of a kubernetes target: register the pod as [kubernetes.templates.NAME], and use `template`"
    for field in sorted(spec.keys() - _SPEC):
        yield f"spec.{field}", "not supported"
    if set(spec) & _HOUSEKEEPING or "ttlSecondsAfterFinished" in job:
        yield "history limits", "successful Jobs are deleted when they end, failed ones after `keep_failed` (1h)"
    for field in sorted(job.keys() - _JOB):
        if not (field in ("completions", "parallelism") and job[field] == 1):
            yield f"jobTemplate.spec.{field}", "a run is one pod that is started once"
    if pod.get("restartPolicy") == "OnFailure":
        yield "restartPolicy OnFailure", "a failed attempt is repeated in a new pod"
    if _table(job, "template", "metadata").get("labels") or _table(job, "template", "metadata").get("annotations"):
        yield "labels and annotations of the pod", template
    for field in sorted(field for field in pod.keys() - _POD if pod[field]):
        yield f"pod.{field}", template
    for other in containers[1:]:
        yield f"container {other.get('name')}", "an image is one container: register the pod as a template"
    for field in sorted(field for field in containers[0].keys() - _CONTAINER if containers[0][field]):
        yield f"container.{field}", template
    if any("$(" in str(word) for name in ("command", "args") for word in containers[0].get(name) or ()):
        yield "$(…) in command or args", "it is not replaced by variables"
