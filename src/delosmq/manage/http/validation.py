"""Validation errors of requests, as sentences that say what to write instead."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from delosmq.manage.http.problems import FieldFault, ProblemError

_BODY: Final = "the request's body "
_WHOLE: Final = "must be a whole number"
_SWITCH: Final = "must be true or false"
_SENTENCES: Final[Mapping[str, str]] = {
    "missing": "is missing; give it a value",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "must be a smaller number",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "string_type": "must be a text",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_too_short": "must not be empty",
    "string_too_long": "may have {max_length} characters at most",
    "too_short": "must have {min_length} entry or more",
    "too_long": "may have {max_length} entries at most",
    "model_type": "must be a JSON object, such as {{}}",
}
"""By the kind of a validation error, with what its context tells."""


def invalid(error: ValidationError, model: type[BaseModel]) -> ProblemError:
    """The answer to a request that does not fit its model."""
    faults = tuple(_fault(fault, model) for fault in error.errors(include_url=False, include_input=False))
    detail = "; ".join(f"'{fault.field}' {fault.message}" if fault.field else _BODY + fault.message for fault in faults)
    return ProblemError(400, "DMQ6407", "INVALID", detail, faults=faults)


def _fault(fault: Any, model: type[BaseModel]) -> FieldFault:
    place = fault["loc"]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    kind = str(fault["type"])
    if kind == "extra_forbidden":
        return FieldFault(field, _unknown(str(place[-1]), model))
    sentence = _SENTENCES.get(kind)
    if sentence is None:
        return FieldFault(field, f"is wrong: {fault['msg']}")
    message = sentence.format(**fault.get("ctx", {}))
    return FieldFault(
        field, f"{message}, or null" if kind.endswith("_type") and _may_be_null(model, place) else message
    )


def _may_be_null(model: type[BaseModel], place: tuple[object, ...]) -> bool:
    field = model.model_fields.get(str(place[0])) if len(place) == 1 else None
    return field is not None and NoneType in get_args(field.annotation)


def _unknown(name: str, model: type[BaseModel]) -> str:
    """What to say of a field that a model doesn't have."""
    if name in getattr(model, "fixed", ()):
        return "can't change while it exists; delete it and create it again"
    known = [field.alias or key for key, field in model.model_fields.items()]
    nearest = get_close_matches(name.lower().replace("-", "_"), known, 1)
    if nearest:
        return f"is unknown; did you mean '{nearest[0]}'?"
    return (
        f"is unknown; there are {', '.join(known)}" if known else "is unknown; leave it out, as there is nothing to say"
    )
