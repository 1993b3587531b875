"""How to start the server."""

import json
import os
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SETS = json.loads((ROOT / "codegen-snapshots/sets.json").read_text())


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def command():
    """The program and its options."""
    default = str(ROOT / "target/debug/exa-mcp-server")
    return shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", default))


@pytest.fixture(scope="session")
def sets():
    """The names of the tools of every set."""
    return SETS
