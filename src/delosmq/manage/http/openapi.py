"""The OpenAPI document, made from the same rows as the routes."""

import json
import re
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from delosmq.manage.http.operations import JSON_TYPE, Operation
from delosmq.manage.http.problems import PROBLEM_TYPE, ProblemDocument

_OPENAPI_VERSION: Final = "3.1.0"
_REFERENCES: Final = "#/components/schemas/{model}"
_PATH_PARAMETER: Final = re.compile(r"{(\w+)}")
_SCHEMA_NAMES: Final = {"BrokerStatus": "BrokerInfo", "TransactionStatus": "TransactionInfo"}
"""Published names of the classes that have another one here."""
_RENAMED: Final = re.compile(rf'(["/])({"|".join(_SCHEMA_NAMES)})"')


class _Schemas:
    """Schemas by name, collected while the paths are written."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def reference(self, kind: Any, mode: Any) -> dict[str, Any]:
        written = json.dumps(TypeAdapter(kind).json_schema(ref_template=_REFERENCES, mode=mode))
        schema: dict[str, Any] = json.loads(
            _RENAMED.sub(lambda found: f'{found[1]}{_SCHEMA_NAMES[found[2]]}"', written)
        )
        self.by_name.update(schema.pop("$defs", {}))
        name = schema.get("title")
        if name is None:
            return schema
        self.by_name[name] = schema
        return {"$ref": _REFERENCES.format(model=name)}


def document(operations: list[Operation], version: str) -> dict[str, Any]:
    schemas = _Schemas()
    problem = {
        "description": "A problem",
        "content": {PROBLEM_TYPE: {"schema": schemas.reference(ProblemDocument, "serialization")}},
    }
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, schemas, problem)
    return {
        "openapi": _OPENAPI_VERSION,
        "info": {
            "title": "DelosMQ",
            "version": version,
            "summary": "Queues, leases, health and metrics of one broker",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"basic": []}],
        "paths": paths,
        "components": {"schemas": schemas.by_name, "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
    }


def _describe(operation: Operation, schemas: _Schemas, problem: dict[str, Any]) -> dict[str, Any]:
    if operation.answer is None:
        success: dict[str, Any] = {"schema": {"type": "string", "contentMediaType": operation.media_type}}
    else:
        success = {"schema": schemas.reference(operation.answer, "serialization")}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"Needs: {operation.permission}.",
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): {"description": "Done", "content": {operation.media_type: success}},
            "default": problem,
        },
    }
    if not operation.needs_login:
        described["security"] = []
    if operation.has_body:
        reference = schemas.reference(operation.wanted, "validation")
        needed = not getattr(operation.wanted, "may_be_left_out", False)
        described["requestBody"] = {"required": needed, "content": {JSON_TYPE: {"schema": reference}}}
    if operation.takes:
        binary = {"type": "string", "format": "binary"}
        described["requestBody"] = {"required": True, "content": {operation.takes: {"schema": binary}}}
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_PARAMETER.findall(operation.path)
    ]
    if operation.wanted is not None and not operation.has_body:
        parameters += _query_parameters(operation.wanted)
    return parameters


def _query_parameters(query: type[BaseModel]) -> list[dict[str, Any]]:
    schema = query.model_json_schema(by_alias=True)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]
