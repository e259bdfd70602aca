"""Each error of the client says what to do about it: an imperative behind what is wrong."""

import inspect
import re
from collections.abc import Callable
from types import ModuleType

import pytest

from delosmq.client import ClientError, errors
from delosmq.model.errors import XAER_NOTA, XAER_RMERR, XAER_RMFAIL
from delosmq.sessions.openwire.client import errors as machine_errors
from delosmq.wire.openwire.structures import Throwable

REMEDY = re.compile(
    r"(?:[:;.,?]|, or| then|\n)\s*(?:did you mean|but must be|"
    r"(?:ask|call|check|close|connect|create|do|end|give|have|leave|let|look|make|raise|say|see|send|start|take|try|use|wait|write)\b)",
    re.IGNORECASE,
)
"""A clause that begins with what to do; a new one may need its verb here."""
SAMPLES: dict[str, object] = {
    "str": "x",
    "int": 1,
    "float": 1.5,
    "bool": True,
    "object": "x",
    "list[str]": ["x"],
    "ClientError": ClientError("DMQ9027", "the broker refused it"),
    "Throwable | None": None,
}
OF_CALLERS = {"remedy": "write this instead."}
"""Parameters that hold it; without them a sentence has its own."""


def makers(module: ModuleType) -> list[Callable[..., ClientError]]:
    found = inspect.getmembers(module, inspect.isfunction)
    return [one for name, one in found if one.__module__ == module.__name__ and not name.startswith("_")]


def made(maker: Callable[..., ClientError], **given: object) -> ClientError:
    for name, parameter in inspect.signature(maker).parameters.items():
        if name not in given and parameter.default is parameter.empty:
            kind = inspect.formatannotation(parameter.annotation).rpartition(".")[2]
            given[name] = OF_CALLERS.get(name) or SAMPLES[kind]
    return maker(**given)


@pytest.mark.sources  # of compiled functions no parameters are known
@pytest.mark.parametrize(
    "maker", [pytest.param(one, id=one.__name__) for module in (errors, machine_errors) for one in makers(module)]
)
def test_each_error_has_a_code_and_a_remedy(maker: Callable[..., ClientError]) -> None:
    error = made(maker)
    assert re.fullmatch(r"DMQ90[0-9]{2}", error.code)
    assert REMEDY.search(error.message), error.message
    for name, parameter in inspect.signature(maker).parameters.items():
        if parameter.annotation is bool:
            assert REMEDY.search(made(maker, **{name: False}).message)


@pytest.mark.parametrize("package", ["javax.jms", "jakarta.jms", "java.lang"])
@pytest.mark.parametrize(
    ("java_class", "code", "remedy"),
    [
        ("SecurityException", "DMQ9020", "user= and password= of connect()"),
        ("JMSSecurityException", "DMQ9020", "the permission for this"),
        ("InvalidDestinationException", "DMQ9021", "there is one of this name"),
        ("DestinationDoesNotExistException", "DMQ9021", "there is one of this name"),
        ("InvalidSelectorException", "DMQ9022", "price > 10 AND colour = 'red'"),
        ("InvalidClientIDException", "DMQ9023", "another client_id="),
        ("ResourceAllocationException", "DMQ9024", "Try again"),
        ("TransactionRolledBackException", "DMQ9025", "once more"),
        ("IllegalStateException", "DMQ9026", "the broker's log"),
        ("IOException", "DMQ9027", "the broker's log"),
    ],
)
def test_what_the_broker_refuses_has_the_remedy_of_its_class(
    package: str, java_class: str, code: str, remedy: str
) -> None:
    error = machine_errors.refused("the login", Throwable(f"{package}.{java_class}", "no tea"))
    assert str(error).startswith(f"{code}: the broker refused the login: no tea. ")
    assert remedy in error.message
    assert REMEDY.search(error.message)


def test_a_remedy_stands_below_a_drawing_of_the_place() -> None:
    thrown = Throwable("javax.jms.InvalidSelectorException", "it ends too early\n  a >\n     ^")
    assert "\n     ^\nWrite it as " in machine_errors.refused("a consumer", thrown).message


@pytest.mark.parametrize(
    ("said", "error_code"),
    [
        ("no such branch xaErrorCode:-4", XAER_NOTA),
        ("no such branch xaErrorCode:-4.", XAER_NOTA),
        ("xaErrorCode:100 came first, then xaErrorCode:-4", XAER_NOTA),
        ("strange xaErrorCode:tea", XAER_RMERR),
        ("the connection is gone", XAER_RMFAIL),
    ],
)
def test_the_code_of_a_branch_is_read_from_what_the_broker_says(said: str, error_code: int) -> None:
    refused = machine_errors.refused("to commit", Throwable("javax.transaction.xa.XAException", said))
    assert machine_errors.branch_refused(refused).error_code == error_code
