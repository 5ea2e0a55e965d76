"""Holes in the sandbox of scripts, and mistakes with what was uploaded: each lets an attempt of a test through."""

from __future__ import annotations

from proof.planted.plant import Bug, Code, code

__all__ = ["BUGS"]

_UNSEEN = "the simulation runs no scripts"
_ATTACKS = "tests/targets/test_script_attacks.py"
_SCRIPTS = "tests/targets/test_scripts.py"
_ARGS = "onthedot.targets.script.bubblewrap_args:sandbox_args"
_BWRAP = "onthedot.targets.script.bubblewrap"
_VERBS = "onthedot.service.scripts:ScriptVerbs"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    return code(f"scripts: {name}", what, where, part, instead, tests=tests, unseen=_UNSEEN)


BUGS = (
    _bug(
        "the network of the node",
        "a script that asked for no network has that of the node",
        _ARGS,
        '("--unshare-net",)',
        "()",
        f"{_SCRIPTS}::test_with_network_it_reaches_what_the_node_reaches",
    ),
    _bug(
        "its own code can be written",
        "what runs next in the sandbox is not what was sent",
        _ARGS,
        '"--ro-bind-data"',
        '"--bind-data"',
        f"{_ATTACKS}::test_contained",
    ),
    _bug(
        "the root can be written",
        "files outside of /tmp have no limit",
        _ARGS,
        '*("--remount-ro", "/dev", "--remount-ro", "/"),',
        "",
        f"{_ATTACKS}::test_contained",
    ),
    _bug(
        "the environment of the node",
        "the first process of a sandbox shows what the node was started with",
        f"{_BWRAP}:Bubblewrap._spawn",
        "env={},",
        'env={"SECRET": "prey-secret"},',
        f"{_ATTACKS}::test_contained",
    ),
    _bug(
        "no cgroup",
        "a script starts outside of its limits",
        f"{_BWRAP}:_BubblewrapRun.let_go",
        "if self._group is not None:",
        "if False:",
        f"{_ATTACKS}::test_memory_of_many_processes_together",
    ),
    Bug(
        name="scripts: outlives its run",
        what="what a script left running goes on",
        edits=(
            Code(_ARGS, '"--die-with-parent", ', ""),
            Code(f"{_BWRAP}:_BubblewrapRun.kill", "if self._first >= 0:", "if False:"),
        ),
        tests=(f"{_ATTACKS}::test_a_daemon_does_not_outlive_its_run",),
        unseen=_UNSEEN,
    ),
    _bug(
        "a filter without a bound",
        "system calls that are newer than the filter are allowed",
        "onthedot.targets.script.seccomp:filter_program",
        "program += [(_JGT, 0, 1, NEWEST), _fails(errno.ENOSYS)]",
        "pass",
        "tests/targets/test_seccomp.py::test_newer_calls_and_other_architectures",
    ),
    _bug(
        "signals to others",
        "without namespaces a script can end its node",
        "onthedot.targets.script.seccomp:_by_argument",
        'rules |= {"kill": own, "tgkill": own, "prlimit64": own}',
        "pass",
        "tests/targets/test_seccomp.py::test_strict",
    ),
    _bug(
        "network for everybody",
        "a job gets network access that the operator does not allow",
        "onthedot.targets.script.kind:Scripts.check",
        "if target.network and not self._setting.network:",
        "if False:",
        f"{_SCRIPTS}::test_with_network_it_reaches_what_the_node_reaches",
    ),
    _bug(
        "any content under a name",
        "an object that was changed is run",
        "onthedot.targets.script.code_cache:CodeCache.code_of",
        "if script_id(content) != target.script:",
        "if False:",
        f"{_SCRIPTS}::test_an_object_that_was_changed_is_not_run",
    ),
    _bug(
        "delete takes what was uploaded meanwhile",
        "a script is listed, and its content is gone",
        f"{_VERBS}.delete_script",
        "if content is not None and await self.store.find_script(tenant, script) is not None:",
        "if False:",
        "tests/api/test_scripts.py::test_an_upload_during_a_delete_keeps_its_object",
    ),
)
