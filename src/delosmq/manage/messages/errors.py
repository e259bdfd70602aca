"""What is wrong with a management message, in sentences for its answer."""

from collections.abc import Callable
from typing import Final, ParamSpec

from delosmq.manage.control.queues import ExistsError
from delosmq.model.errors import LimitError, MisuseError, NotFoundError, error_of
from delosmq.model.phrases import one_line

P = ParamSpec("P")

_SHOWN: Final = 200
"""Characters of what a peer sent, at most."""


def _misuse(code: str) -> Callable[[Callable[P, str]], Callable[P, MisuseError]]:
    return error_of(code, MisuseError)


@error_of("DMQ6320", NotFoundError)
def unknown_resource(name: str, known: list[str]) -> str:
    return f"there is no resource '{_short(name)}'; name one of {', '.join(known)} in the property _AMQ_ResourceName"


@_misuse("DMQ6321")
def no_resource() -> str:
    return "the message names no resource; name one, such as 'broker', in the property _AMQ_ResourceName"


@_misuse("DMQ6322")
def unknown_attribute(resource: str, name: str) -> str:
    return f"resource '{_short(resource)}' has no attribute '{_short(name)}'; the manual lists those there are"


@_misuse("DMQ6323")
def unknown_operation(resource: str, name: str) -> str:
    return f"resource '{_short(resource)}' has no operation '{_short(name)}'; the manual lists those there are"


@_misuse("DMQ6324")
def wrong_arguments(resource: str, name: str, declarations: list[str]) -> str:
    known = " or ".join(declarations)
    return f"operation '{_short(name)}' of '{_short(resource)}' does not take these arguments; call it as {known}"


@_misuse("DMQ6325")
def body_not_json(detail: str) -> str:
    return f"the body of a management message is a JSON array of the operation's arguments, and this is none: {detail}"


@error_of("DMQ6326", LimitError)
def body_too_large(size_bytes: int, limit_bytes: int) -> str:
    return f"the body has {size_bytes} bytes, and that of a management message may have {limit_bytes}; send less"


@error_of("DMQ6327", LimitError)
def answer_too_large(size_bytes: int, limit_bytes: int) -> str:
    return (
        f"the answer would have {size_bytes} bytes, and {limit_bytes} may be; ask for less at once, or page by page"
        " over HTTP"
    )


@_misuse("DMQ6328")
def broken(name: str) -> str:
    return f"the broker failed to answer ({name}); its log says more"


@error_of("DMQ6330", NotFoundError)
def unknown_acceptor(name: str, known: list[str]) -> str:
    return f"there is no acceptor '{_short(name)}'; there are {', '.join(known) or 'none'}"


@_misuse("DMQ6331")
def queue_configuration_wrong(detail: str) -> str:
    return f"the description of a queue is a JSON object as Artemis's QueueConfiguration writes it: {_short(detail)}"


@error_of("DMQ6332", LimitError)
def too_many_names(count: int, limit: int) -> str:
    return f"there are {count} names, and one answer may have {limit}; ask for pages with listQueues or listAddresses"


@_misuse("DMQ6333")
def page_wrong(limit: int) -> str:
    return f"the first page is 1, and a page has 1 to {limit} rows"


@_misuse("DMQ6334")
def options_wrong(detail: str) -> str:
    return f"the options of a list can't be followed: {_short(detail)}"


@error_of("DMQ6335", ExistsError)
def address_exists(name: str) -> str:
    return f"address '{_short(name)}' exists already; create its queues, or choose another name"


@_misuse("DMQ6336")
def routing_type_wrong(name: str) -> str:
    return f"'{_short(name)}' is no routing type; it is ANYCAST or MULTICAST"


@_misuse("DMQ6340")
def message_page_wrong(most: int, looked_at: int) -> str:
    return (
        f"the first page is 1, a page has 1 to {most} messages, and one may look at the first {looked_at:,} of a queue;"
        " choose by a filter, or look page by page over HTTP"
    )


@_misuse("DMQ6337")
def sends_as_another(user: str) -> str:
    return f"a message is sent as the user who asks, and not as '{_short(user)}'; say null for user and password"


@_misuse("DMQ6338")
def body_not_base64() -> str:
    return "the body of a message that is no text (type 3) is Base64, and this is none; encode its bytes"


@error_of("DMQ6339", LimitError)
def too_many_branches(limit: int) -> str:
    return f"more than {limit} transactions are prepared; look at them and end them over HTTP, page by page"


def _short(text: str) -> str:
    return one_line(text, _SHOWN)
