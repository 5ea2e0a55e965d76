"""A test that is collected and not run must turn the session red: tests/services/complete.py."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = "tests.services.complete"

EQUAL = """
def pytest_collection_modifyitems(items):
    for item in items:
        item._id = items[0].id
"""

FORGETFUL = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    return True if "forgotten" in item.name else None
"""

SILENT = """
import pytest

@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node, error):
    node.config.pluginmanager.getplugin("complete").by_worker.clear()
"""

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(5))
def test_kept(n):
    assert True

def test_forgotten():
    assert True

@pytest.mark.alone
def test_skipped():
    pytest.skip("why not")
"""

SHARED = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "shared"])


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take seconds to import
    pytester.makepyfile(TESTS)

    def go(*args: str, plugin: bool = True) -> pytest.RunResult:
        extra = ("-p", PLUGIN) if plugin else ()
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "xdist.plugin", *extra, *args, timeout=50)

    return go


@SHARED
def test_all_that_was_collected_was_run(run, workers):
    result = run(*workers)
    result.assert_outcomes(passed=6, skipped=1)
    assert result.ret == 0


@SHARED
def test_equal_ids_are_refused_before_anything_runs(pytester, run, workers):
    pytester.makeconftest(EQUAL)
    result = run(*workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "tests with equal ids" in str(result.stdout) + str(result.stderr)
    assert "(7 times)" in str(result.stdout) + str(result.stderr)


def test_without_the_check_equal_ids_lose_tests_silently(pytester, run):
    """What it is for: if this fails, pytest-xdist has mended it."""
    pytester.makeconftest(EQUAL)
    result = run("-n", "2", "--dist", "loadscope", plugin=False)
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == 1


@SHARED
def test_a_test_that_never_ran_fails_the_session(pytester, run, workers):
    pytester.makeconftest(FORGETFUL)
    assert run(*workers, plugin=False).ret == 0
    result = run(*workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*1 of 7 collected tests: never run:", "*::test_forgotten"])


def test_a_report_that_got_lost_on_its_way_fails_the_session(pytester, run):
    pytester.makeconftest(SILENT)
    result = run("-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["worker gw0 ran 7 tests, reports came of 0"])


def test_a_session_that_was_told_to_stop_is_not_blamed_for_the_rest(pytester, run):
    pytester.makepyfile(test_first="def test_broken():\n    assert False\n")
    result = run("-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*never run*")


@SHARED
def test_the_parts_of_a_run_are_counted(pytester, run, workers):
    for chosen in ("not alone", "alone"):
        assert run(*workers, "-m", chosen, "--tally", "tally").ret == 0
    assert (pytester.path / "tally").read_text().splitlines() == ["6 6 1", "1 1 0"]
