"""An instance as `delosmq create` makes it, for each test that asks for one."""

import shutil
from pathlib import Path

import pytest

from tests.cli.processes import PASSWORD, call


@pytest.fixture(scope="session")
def made_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `delosmq create` makes."""
    directory = tmp_path_factory.mktemp("made") / "instance"
    made = call(
        "create",
        str(directory),
        "--password-stdin",
        "--stomp-port",
        "0",
        "--openwire-port",
        "0",
        "--http-port",
        "0",
        text=PASSWORD + "\n",
    )
    assert made.returncode == 0, made.stderr
    assert PASSWORD not in made.stdout
    return directory


@pytest.fixture
def instance(made_instance: Path, tmp_path: Path) -> Path:
    """A copy: none of its files says where it is."""
    return Path(shutil.copytree(made_instance, tmp_path / "instance"))
