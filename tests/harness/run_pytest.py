"""Runs pytest with these arguments, and fails unless it ran to its end and every test passed.

The exit status alone does not say that: it is 0 if a test ends the process with `os._exit(0)`. The plugin `strict`
reports the end of a successful run.
"""

import os
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    report = os.path.join(folder, "success")
    environment = {**os.environ, "PYTEST_SUCCESS_REPORT": report}
    status = subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], env=environment)
    if status == 0 and not os.path.exists(report):
        print("pytest ended before its last test, or without the plugin `strict`", file=sys.stderr)
        status = 1
sys.exit(status)
