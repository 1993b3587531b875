"""A plugin for pytest: a run is a success only if every test that was found has passed."""

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    passed = len(reporter.stats.get("passed", []))
    if exitstatus == pytest.ExitCode.OK and passed != session.testscollected:
        reporter.write_line(f"only {passed} of {session.testscollected} tests passed", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    report = os.environ.get("PYTEST_SUCCESS_REPORT")
    if report and session.exitstatus == pytest.ExitCode.OK:
        with open(report, "w"):
            pass
