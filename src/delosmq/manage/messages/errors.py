"""What is wrong with a management message, in sentences for its answer."""

from collections.abc import Callable
from typing import Final, ParamSpec

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


def _short(text: str) -> str:
    return one_line(text, _SHOWN)
