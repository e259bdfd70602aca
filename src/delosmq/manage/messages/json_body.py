"""Bodies of management messages: a JSON array of arguments comes, a JSON array with one result goes.

Source: JsonUtil and ManagementHelper of Artemis.
"""

import json
from typing import Any, Final

from delosmq.manage.messages import errors
from delosmq.model.message import BYTES_BODY, EMPTY_BODY, TEXT_BODY, HubMessage
from delosmq.model.values import BODY_LIMIT_BYTES

ANSWER_LIMIT_BYTES: Final = BODY_LIMIT_BYTES


def read_arguments(hub: HubMessage) -> list[Any]:
    """The arguments; none of an empty body.

    Raises:
        LimitError: the body is larger than that of a request over HTTP.
        MisuseError: it is no JSON array.
    """
    body = hub.body
    if hub.body_kind not in (TEXT_BODY, BYTES_BODY, EMPTY_BODY):
        raise errors.body_not_json("send it as a text message")
    check_size(len(body))
    if not body:
        return []
    try:
        found = json.loads(body.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise errors.body_not_json("its lists or objects are nested too deeply") from None
    except ValueError as error:
        raise errors.body_not_json(str(error)) from None
    if not isinstance(found, list):
        raise errors.body_not_json('write ["..."], or [] for no arguments')
    return found


def check_size(size_bytes: int) -> None:
    """Raises LimitError when a body is larger than one may be."""
    if size_bytes > BODY_LIMIT_BYTES:
        raise errors.body_too_large(size_bytes, BODY_LIMIT_BYTES)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def write_result(result: object) -> bytes:
    """One result as a body; empty for none, as of an operation that gives nothing.

    Raises:
        LimitError: it is larger than an answer may be.
    """
    if result is None:
        return b""
    text = json.dumps([result], ensure_ascii=False, separators=(",", ":"))
    body = text.encode("utf-8", "replace")
    if len(body) > ANSWER_LIMIT_BYTES:
        raise errors.answer_too_large(len(body), ANSWER_LIMIT_BYTES)
    return body
