"""The comparison behind `make interop`: what counts as equal, and what fails a run."""

import socket
import threading
from pathlib import Path

import pytest

from interop.compare import Difference, Verdict, compare, read_differences
from interop.openwire.record import Tap
from interop.programs import Outcome, normalised


def outcome(**cases: list[str]) -> Outcome:
    return Outcome(dict(cases))


def test_equal_lines_are_equal():
    comparison = compare("p", outcome(a=["x", "y"]), outcome(a=["x", "y"]), [])
    assert comparison.verdicts == {"a": Verdict.EQUAL}


def test_notes_are_not_compared():
    comparison = compare("p", outcome(a=["x", "~ its words"]), outcome(a=["x", "~ our words"]), [])
    assert comparison.verdicts == {"a": Verdict.EQUAL}


def test_a_difference_is_shown_line_by_line():
    comparison = compare("p", outcome(a=["x", "y"]), outcome(a=["x", "z"]), [])
    assert comparison.verdicts == {"a": Verdict.DIFFERENT}
    assert comparison.details["a"] == [" x", "-y", "+z"]


@pytest.mark.parametrize("expected, seen", [(outcome(a=["x"]), outcome()), (outcome(), outcome(a=["x"]))])
def test_a_case_that_ran_on_one_broker_only_is_different(expected: Outcome, seen: Outcome):
    assert compare("p", expected, seen, []).verdicts == {"a": Verdict.DIFFERENT}


def test_a_difference_on_purpose_is_used_where_something_differs_only():
    listed = [Difference("p", "a*", "why"), Difference("p", "same", "why"), Difference("other", "*", "why")]
    comparison = compare("p", outcome(ab=["x"], same=["x"]), outcome(ab=["y"], same=["x"]), listed)
    assert comparison.verdicts == {"ab": Verdict.INTENDED, "same": Verdict.EQUAL}
    assert [difference.used for difference in listed] == [True, False, False]


def test_the_list_of_differences(tmp_path: Path):
    path = tmp_path / "differences.txt"
    path.write_text("# words\n\nselectors | takes a | b | because of c\n")
    assert read_differences(path) == [Difference("selectors", "takes a | b", "because of c")]
    path.write_text("selectors | takes a\n")
    with pytest.raises(ValueError, match=r"differences\.txt:1"):
        read_differences(path)


@pytest.mark.parametrize(
    "line, same",
    [
        ("from ID:some-host.example-34567-1700000000000-1:22:1:1:9 on", "from ID:* on"),
        ("tcp://127.0.0.1:41234", "tcp://HOST:PORT"),
        ("Message Expired. Expiration:1795250346346", "Message Expired. Expiration:*"),
        ("m1 #2 redelivered", "m1 #2 redelivered"),
    ],
)
def test_only_what_no_two_runs_share_is_replaced(line: str, same: str):
    assert normalised(line) == same


def test_the_tap_passes_frames_on_and_notes_them():
    request, answer = bytes([0, 0, 0, 2, 10, 7]), bytes([0, 0, 0, 1, 30])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(len(request), socket.MSG_WAITALL) == request
                connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        tap = Tap(listener.getsockname()[1])
        with socket.create_connection(("127.0.0.1", tap.port)) as client:
            client.sendall(request)
            assert client.makefile("rb").read() == answer
        server.join()
        tap.close()
    assert tap.take() == [["> 00000002" + "0a07", "< 00000001" + "1e"]]
