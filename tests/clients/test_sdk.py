"""The generated Python package: does it type-check, and does a program that uses it run?"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OUT = HERE / "sdk/out"
DEFAULT_COMMAND = str(HERE / "../../target/debug/exa-mcp-server")
# The modules must work with the default form of structured content.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "EXA_MCP_STRUCTURED"}
COMMAND = shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", DEFAULT_COMMAND))


def run(*command):
    paths = {"PYTHONPATH": str(OUT), "MYPYPATH": str(OUT)}
    process = subprocess.run(
        command, cwd=HERE, env={**ENVIRONMENT, **paths}, capture_output=True, text=True, timeout=300
    )
    return process.returncode, process.stdout + process.stderr


@pytest.fixture(scope="module", autouse=True)
def package():
    shutil.rmtree(OUT / "exa_sdk", ignore_errors=True)
    code, text = run(*COMMAND, "sdk", "--lang", "python", "--out", OUT / "exa_sdk")
    assert code == 0, text


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_the_package_and_a_program_type_check(version):
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-version", version]
    cache = ["--cache-dir", OUT / "mypy"]
    code, text = run(*mypy, *cache, "-p", "exa_sdk")
    assert code == 0, text
    code, text = run(*mypy, *cache, "sdk/program.py")
    assert code == 0, text


def test_the_example_of_the_documentation_type_checks():
    text = (HERE / "../../docs/sdk.md").read_text()
    imports, body = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1].split("\n\n", 1)
    function = "async def main(session: ClientSession) -> None:\n" + textwrap.indent(body, "    ")
    example = OUT / "example.py"
    example.write_text(f"from mcp import ClientSession\n{imports}\n\n{function}")
    cache = ["--cache-dir", OUT / "mypy"]
    code, text = run(sys.executable, "-m", "mypy", "--strict", *cache, example)
    assert code == 0, text


def test_a_program_written_against_it_runs():
    code, text = run(sys.executable, "sdk/program.py", *COMMAND, "--sandbox")
    assert code == 0, text
    assert text.count(": fine\n") == 3, text
