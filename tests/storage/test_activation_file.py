"""The activation file: what stands in it after each write, after one that was torn, and what a stale writer changes."""

# HA-1

from pathlib import Path

import pytest
from crc32c import crc32c

from delosmq.model.errors import StorageError
from delosmq.storage.activation import PairState
from delosmq.storage.activation_file import (
    ACTIVATION_FILE,
    HEAD,
    NOBODY,
    SECTOR,
    STATE_AT,
    ActivationFile,
    ActivationRecord,
)


def test_a_directory_without_one_was_never_active(tmp_path: Path) -> None:
    file = ActivationFile(tmp_path)
    assert file.newest() == (0, NOBODY)
    assert file.state(0) is PairState.NOT_STARTED


def test_the_newest_epoch_and_its_state_are_read_back(tmp_path: Path) -> None:
    file = ActivationFile(tmp_path)
    file.begin(1, ActivationRecord("primary", configuration={"queues": "ab"}))
    assert file.state(1) is PairState.ACTIVE
    file.say(1, PairState.PAUSED)
    assert ActivationFile(tmp_path).state(1) is PairState.PAUSED
    file.begin(2, ActivationRecord("backup", makes_way=True))
    assert ActivationFile(tmp_path).newest() == (2, ActivationRecord("backup", makes_way=True))
    assert ActivationFile(tmp_path).state(2) is PairState.ACTIVE


@pytest.mark.parametrize("epoch", [1, 2, 3, 4])
def test_an_epoch_of_which_a_part_is_on_the_disk_has_not_begun(tmp_path: Path, epoch: int) -> None:
    file = ActivationFile(tmp_path)
    for one in range(1, epoch):
        file.begin(one, ActivationRecord(f"holder {one}"))
    before = file.newest()
    path = tmp_path / ACTIVATION_FILE
    old = path.read_bytes() if path.exists() else b""
    file.begin(epoch, ActivationRecord("x" * 100))
    new = path.read_bytes()
    at = SECTOR * (epoch % 2)
    for torn in (1, HEAD.size - 1, HEAD.size + 20, HEAD.size + 100):
        path.write_bytes(new[: at + torn] + old[at + torn :].ljust(STATE_AT - at - torn, b"\0"))
        assert ActivationFile(tmp_path).newest() == before


def test_what_a_broker_of_an_older_epoch_says_does_not_count(tmp_path: Path) -> None:
    file = ActivationFile(tmp_path)
    file.begin(1, ActivationRecord("stale"))
    file.begin(2, ActivationRecord("successor"))
    ActivationFile(tmp_path).say(1, PairState.PAUSED)
    assert file.state(2) is PairState.ACTIVE
    assert file.newest()[0] == 2


def test_a_version_of_later_releases_is_refused(tmp_path: Path) -> None:
    file = ActivationFile(tmp_path)
    file.begin(1, NOBODY)
    path = tmp_path / ACTIVATION_FILE
    content = bytearray(path.read_bytes())
    content[SECTOR + 8] = 9
    length = HEAD.unpack_from(content, SECTOR)[4]
    end = SECTOR + HEAD.size + length
    content[end : end + 4] = crc32c(bytes(content[SECTOR:end])).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"DMQ3051: .*version 9 is unknown"):
        file.newest()


def test_a_file_for_its_user_alone(tmp_path: Path) -> None:
    ActivationFile(tmp_path).begin(1, NOBODY)
    assert (tmp_path / ACTIVATION_FILE).stat().st_mode & 0o777 == 0o600
