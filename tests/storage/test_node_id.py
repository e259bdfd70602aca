"""The file node-id belongs to the journal's files: none is made for a journal that has one."""

import uuid
from pathlib import Path

import pytest

from delosmq.model.errors import StorageError
from delosmq.storage.journal import open_journal
from delosmq.storage.journal.recovery.node_id import NODE_ID_FILE, load_node_id
from tests.storage.support import SMALL, Kept, Listener, store_message


def run_once(directory: Path) -> int:
    """A broker that starts, stores a message and stops; how many messages it found."""
    store = open_journal(directory, SMALL, sync_process=False)
    try:
        listener, kept = Listener(), Kept()
        store.attach(listener, listener.source)
        store.recover(kept)
        found = len(kept.homes)
        batch, _ = store_message(found + 1, b"body")
        store.append(batch)
        store.flush()
        return found
    finally:
        store.close(60)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("lost", [[], ["manifest"], ["journal-*.dmq"]])
def test_a_start_without_the_node_id_of_its_journal_changes_nothing_and_names_it(
    tmp_path: Path, lost: list[str]
) -> None:
    run_once(tmp_path)
    node_id = uuid.UUID(bytes=load_node_id(tmp_path))
    for pattern in (NODE_ID_FILE, *lost):
        for path in tmp_path.glob(pattern):
            path.unlink()
    before = contents(tmp_path)
    with pytest.raises(StorageError, match=f"DMQ3036.*node-id is missing.*write {node_id} into it"):
        open_journal(tmp_path, SMALL, sync_process=False)
    assert contents(tmp_path) == before


def test_the_node_id_that_is_named_starts_the_journal(tmp_path: Path) -> None:
    run_once(tmp_path)
    node_id = uuid.UUID(bytes=load_node_id(tmp_path))
    (tmp_path / NODE_ID_FILE).unlink()
    (tmp_path / NODE_ID_FILE).write_text(f"{node_id}\n")
    assert run_once(tmp_path) == 1


def test_a_journal_whose_headers_are_all_damaged_gets_no_new_node_id(tmp_path: Path) -> None:
    (tmp_path / "manifest").write_bytes(b"x" * 9000)
    with pytest.raises(StorageError, match=r"DMQ3036.*no header of these files says which it was"):
        open_journal(tmp_path, SMALL, sync_process=False)
    assert not (tmp_path / NODE_ID_FILE).exists()


def test_another_node_id_is_answered_with_the_one_in_the_files(tmp_path: Path) -> None:
    run_once(tmp_path)
    node_id = uuid.UUID(bytes=load_node_id(tmp_path))
    (tmp_path / NODE_ID_FILE).write_text(f"{uuid.UUID(int=1)}\n")
    with pytest.raises(StorageError, match=f"DMQ3008.*restore the file node-id, or write {node_id} into it"):
        run_once(tmp_path)


def test_files_of_zeros_are_no_journal_yet(tmp_path: Path) -> None:
    (tmp_path / "journal-000001.dmq").write_bytes(bytes(4096))
    assert len(load_node_id(tmp_path)) == 16
