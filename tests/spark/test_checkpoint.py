"""Checkpoints that a kill left half written: what is mended, and what is not touched."""

# PIPE-2

from pathlib import Path

import pytest

from delosmq.spark.checkpoint import heal_checkpoint
from delosmq.spark.errors import ArchiveError

METADATA = '{"id":"3f2a1b9c-aaaa-4bbb-8ccc-123456789abc"}'
OFFSET = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"lease": %d, "incarnation": "i"}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


def checkpoint(directory: Path, *, metadata: str = METADATA, offsets: list[str], commits: list[str]) -> Path:
    for name, texts in (("offsets", offsets), ("commits", commits)):
        (directory / name).mkdir(parents=True)
        for number, text in enumerate(texts):
            (directory / name / str(number)).write_text(text)
            (directory / name / f".{number}.crc").write_bytes(b"crc")
    (directory / "metadata").write_text(metadata)
    return directory


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def whole(count: int) -> list[str]:
    return [OFFSET % (number + 1) for number in range(count)]


def test_a_checkpoint_that_is_whole_or_not_there_stays_as_it_is(tmp_path: Path):
    assert heal_checkpoint(tmp_path / "nothing") == []
    made = checkpoint(tmp_path / "c", offsets=whole(3), commits=[COMMIT] * 2)
    before = files(made)
    assert heal_checkpoint(made) == []
    assert files(made) == before


@pytest.mark.parametrize("end", [0, 1, 2, 3, 20, 57, 70, len(OFFSET % 1) - 1])
@pytest.mark.parametrize("committed", [0, 1])
def test_a_newest_offset_that_was_cut_off_goes_wherever_it_was_cut(tmp_path: Path, end: int, committed: int):
    offsets = [*whole(committed), (OFFSET % 9)[:end]]
    made = checkpoint(tmp_path, offsets=offsets, commits=[COMMIT] * committed)
    (said,) = heal_checkpoint(made)
    assert said == f"removed {made}/offsets/{committed}, which a kill cut off: batch {committed} is planned again"
    assert not {f"offsets/{committed}", f"offsets/.{committed}.crc"} & files(made)
    assert len([name for name in files(made) if name.startswith("offsets/")]) == 2 * committed
    assert heal_checkpoint(made) == []


@pytest.mark.parametrize("end", [0, 2, 3, 10, len(COMMIT) - 1])
def test_a_newest_commit_that_was_cut_off_goes(tmp_path: Path, end: int):
    made = checkpoint(tmp_path, offsets=whole(2), commits=[COMMIT, COMMIT[:end]])
    assert heal_checkpoint(made) == [f"removed {made}/commits/1, which a kill cut off: batch 1 is repeated"]
    assert {"offsets/1", "commits/0"} <= files(made)
    assert "commits/1" not in files(made)


def test_both_of_the_same_batch_may_go(tmp_path: Path):
    made = checkpoint(tmp_path, offsets=[*whole(1), ""], commits=[COMMIT, ""])
    assert len(heal_checkpoint(made)) == 2
    assert heal_checkpoint(made) == []


def test_an_id_goes_only_before_the_first_batch(tmp_path: Path):
    made = checkpoint(tmp_path / "new", metadata="", offsets=[], commits=[])
    assert len(heal_checkpoint(made)) == 1
    assert files(made) == set()
    made = checkpoint(tmp_path / "used", metadata=METADATA[:9], offsets=whole(1), commits=[])
    before = files(made)
    with pytest.raises(ArchiveError, match=r"DMQ8059: .*/metadata is damaged, .* release the group"):
        heal_checkpoint(made)
    assert files(made) == before


def test_an_offset_whose_batch_was_committed_is_left_alone(tmp_path: Path):
    made = checkpoint(tmp_path, offsets=[*whole(1), ""], commits=[COMMIT] * 2)
    before = files(made)
    with pytest.raises(ArchiveError, match=r"DMQ8059: .*/offsets/1 is damaged"):
        heal_checkpoint(made)
    assert files(made) == before


@pytest.mark.parametrize("planned", [OFFSET % 3, ""])
def test_a_commit_that_a_later_batch_follows_is_left_alone(tmp_path: Path, planned: str):
    made = checkpoint(tmp_path, offsets=[*whole(2), planned], commits=[COMMIT, ""])
    before = files(made)
    with pytest.raises(ArchiveError, match=r"DMQ8059: .*/commits/1 is damaged"):
        heal_checkpoint(made)
    assert files(made) == before


PLAN = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n'
NAMED = PLAN.replace("v1", "v2")


@pytest.mark.parametrize(
    "text",
    [
        PLAN + '{"lease": 1, "incarnation": "i"}\n-',
        PLAN + '-\n{"lease": 1, "incarnation": "i"}',
        PLAN + '123\n{"lease": 1, "incarnation": "i"}\n456',
        PLAN + '{"lease": 1, "incarnation": "i"}\n-1',
        PLAN + '[1, 2]\n"a"\nnull\n{"a": {}}',
        NAMED + '0:{"lease": 1, "incarnation": "i"}\n1:17',
    ],
)
def test_lines_of_other_sources_are_whole_and_missing_ones_are_not(tmp_path: Path, text: str):
    for committed in (0, 1):
        made = checkpoint(tmp_path / str(committed), offsets=[text], commits=[COMMIT] * committed)
        assert heal_checkpoint(made) == []
    made = checkpoint(tmp_path / "next", offsets=[text, text.rpartition("\n")[0]], commits=[COMMIT])
    assert len(heal_checkpoint(made)) == 1


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(
    ("before", "last"),
    [
        ("987", "1004"),
        ("-", '{"a": 1}'),
        ("-7", "-3"),
        ('"a"', '"ab"'),
        ('{"lease": 1, "incarnation": "i"}', '{"lease": 2, "incarnation": "i"}'),
    ],
)
def test_a_file_of_several_sources_that_was_cut_off_goes_wherever_it_was_cut(
    tmp_path: Path, version: str, before: str, last: str
):
    key = "" if version == "v1" else "s1:"
    start = f'{version}\n{{"conf":{{}}}}\n{key}{{"logOffset": 5}}\n'
    old, new = start + key + before, start + key + last
    for end in range(len(new)):
        cut = checkpoint(tmp_path / str(end), offsets=[old, new[:end]], commits=[COMMIT])
        assert len(heal_checkpoint(cut)) == 1, new[:end]
    whole_one = checkpoint(tmp_path / "whole", offsets=[old, new], commits=[COMMIT])
    assert heal_checkpoint(whole_one) == []


def test_the_first_offset_file_of_several_sources_goes_where_a_line_is_cut(tmp_path: Path):
    for number, left in enumerate(("", "{", '{"lease": 1, "incarn', '{"lease": 1, "incarnation": "i"}\n', "1\n")):
        made = checkpoint(tmp_path / str(number), offsets=[PLAN + left], commits=[])
        assert len(heal_checkpoint(made)) == 1, left
