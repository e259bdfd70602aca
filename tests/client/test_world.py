"""The cases of `make interop` for our client, on DelosMQ: what it does here, it does on ActiveMQ Classic.

What Classic makes of each stands in interop/client/expected.txt, which `make interop` compares with brokers of 5.17
and 6.
"""

# ACK-1, ACK-2, ACK-3, ACK-4, ACK-5, ACK-6, ACK-7

from collections.abc import Iterator
from pathlib import Path

import pytest

from delosmq.testing import BrokerFixture
from interop.brokers import PASSWORD, USER
from interop.client.stage import BrokerSite, ClientCase, play
from interop.client.suite import SCRIPTS, configuration, outdated, printed, read_expected
from interop.compare import Difference, read_differences
from interop.programs import Outcome

CASES = [(program, case) for program, cases in SCRIPTS.items() for case in cases]
EXPECTED = read_expected()
DIFFERENCES = read_differences(Path(__file__).parents[2] / "interop" / "openwire" / "differences.txt")


class FixtureSite(BrokerSite):
    """A broker of the test kit."""

    def __init__(self, broker: BrokerFixture) -> None:
        self._broker = broker
        self.port = broker.openwire_port
        self.user, self.password = USER, PASSWORD

    def kill(self) -> None:
        self._broker.crash()

    def start(self) -> None:
        self._broker.start()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FixtureSite]:
    place = tmp_path_factory.mktemp("world")
    (place / "broker.xml").write_text(configuration(), "utf-8")
    with BrokerFixture(place / "data", config=place / "broker.xml", user=USER, password=PASSWORD) as broker:
        yield FixtureSite(broker)


@pytest.mark.parametrize("program, case", CASES, ids=[f"{program}: {case.name}" for program, case in CASES])
def test_it_is_as_on_classic(site: FixtureSite, program: str, case: ClientCase) -> None:
    expected = EXPECTED[program].cases[case.name]
    seen = play(case, site)
    if any(one.covers(program, case.name) for one in DIFFERENCES):
        assert seen != expected
    else:
        assert seen == expected


def test_every_case_is_expected_and_no_other() -> None:
    names = [(program, name) for program, outcome in EXPECTED.items() for name in outcome.cases]
    assert sorted(names) == sorted((program, case.name) for program, case in CASES)


def test_a_difference_is_about_a_case() -> None:
    of_ours = [one for one in DIFFERENCES if one.program in SCRIPTS]
    assert [one for one in of_ours if not any(one.covers(program, case.name) for program, case in CASES)] == []
    assert Difference("python-messages", "text*", "why").covers("python-messages", "text, compressed")


def test_what_is_printed_is_what_is_read(tmp_path: Path) -> None:
    seen = Outcome({"a case: with a colon": ["a line", ""], "none": []})
    (tmp_path / "expected.txt").write_text(f"\nActiveMQ client 5\n{printed('python-x', seen)}", "utf-8")
    assert read_expected(tmp_path / "expected.txt") == {"python-x": seen}
    assert outdated("python-x", seen, {"python-x": seen}) == []
    assert outdated("python-x", seen, {}) == ["a case: with a colon", "none"]
