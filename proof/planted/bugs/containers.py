"""Bugs of containers: run twice, taken from others, not allowed, removed too early, or lost with the engine."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_RUN = "onthedot.targets.container.run:ContainerRun"
_KIND = "onthedot.targets.container.kind:Containers"
_REAL = "tests/targets/test_containers.py"
_FAULTS = "tests/targets/test_container_faults.py"
_UNSEEN = "the simulation has no container engine"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    return code(f"container: {name}", what, where, part, instead, tests=tests, unseen=_UNSEEN)


BUGS = (
    _bug(
        "a name of its own for each attempt",
        "a node that adopts a run does not find its container, and starts another",
        "onthedot.targets.container.creation:container_name",
        "{call.try_number}",
        "{call.try_number}-{id(call)}",
        f"{_REAL}::test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "killed when the node stops",
        "an orderly stop of a node ends the containers that the next one should adopt",
        f"{_RUN}._follow",
        "if self._call.stopped in _KILLS:",
        "if self._call.stopped is not None:",
        f"{_REAL}::test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "whoever has the name is ours",
        "the container of another installation is followed as if it were the run's",
        "onthedot.targets.container.creation:is_ours",
        "installation,",
        "found.label(INSTALLATION),",
        f"{_REAL}::test_a_container_of_another_installation_is_not_ours",
    ),
    _bug(
        "a pattern crosses from the registry into the path",
        "an image of another registry is allowed because its path looks like an allowed name",
        "onthedot.model.image:ImageRule.allows",
        "if not fnmatchcase(image.registry, self.registry) or not fnmatchcase(image.path, self.path):",
        'if not fnmatchcase(image.repository, f"{self.registry}/{self.path}"):',
        "tests/unit/model/test_image.py::test_what_a_pattern_allows",
    ),
    _bug(
        "the tag beside a digest allows it",
        "an image of any digest is run under a tag that is allowed",
        "onthedot.model.image:ImageName.parse",
        "(tag or _LATEST) if digest is None else None",
        "tag or _LATEST",
        "tests/unit/model/test_image.py::test_what_a_pattern_allows",
    ),
    _bug(
        "removed before its result is recorded",
        "a node that dies between the end of a container and its record leaves nothing to be found",
        f"{_RUN}._follow",
        "outcome = outcome_of(",
        "await self._engine.remove(self._name); outcome = outcome_of(",
        f"{_REAL}::test_only_what_is_over_for_a_while_is_left_to_be_removed",
    ),
    _bug(
        "ended ones are removed at once",
        "a node that was frozen before its create finds the name free, and runs the try again",
        f"{_KIND}.inventory",
        "await self._is_old(name)",
        "True",
        f"{_REAL}::test_only_what_is_over_for_a_while_is_left_to_be_removed",
    ),
    _bug(
        "removed though it has just ended",
        "what was listed as running and has ended and was recorded since is removed at once",
        f"{_KIND}.remove",
        "if found.is_over and found.ended_ago < self._setting.keep / 1000:",
        "if False:",
        f"{_REAL}::test_only_what_is_over_for_a_while_is_left_to_be_removed",
    ),
    _bug(
        "what another one has run is started",
        "a container whose name was taken meanwhile, and has ended since, runs a second time",
        f"{_RUN}._found_or_started",
        "if found is not None and not found.is_new:",
        "if False:",
        f"{_FAULTS}::test_a_name_that_was_taken_and_has_ended_since_is_not_started_again",
    ),
    _bug(
        "what another one has created is started",
        "the start that a killed node had asked for is carried out late, and the container runs twice",
        f"{_RUN}._found_or_started",
        "await self._discard(found)",
        "await self._start(found.id); return None",
        f"{_FAULTS}::test_a_start_that_arrives_after_the_run_was_adopted_starts_nothing",
    ),
    _bug(
        "a lost answer to start is not begun",
        "a container that runs is given back, and another node starts a second one",
        f"{_RUN}._start",
        "self._following.cut = True",
        "raise NotStarted(NOT_BEGUN)",
        f"{_FAULTS}::test_a_lost_answer_to_start_is_followed_and_not_started_again",
    ),
    _bug(
        "another engine says that it is gone",
        "a run is repeated because the socket was given to another engine for a moment",
        "onthedot.targets.container_engine.link:EngineLink.is_at",
        "and self.place == place",
        "",
        f"{_FAULTS}::test_what_is_gone_while_another_engine_answers_is_not_gone",
    ),
)
