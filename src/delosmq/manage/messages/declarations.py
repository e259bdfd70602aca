"""Attributes and operations of resources, each declared by the method that serves it, with its types.

Methods take the login of the asking user first. An operation may have several methods, as Java overloads names; long
work is a generator that yields how long to rest (ns) between its slices, and returns the result.

Source: ManagementServiceImpl.getAttribute and invokeOperation of Artemis, which look for Java's methods by name; the
types are those of Java for the same reason.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter as InspectedParameter
from inspect import signature
from types import NoneType
from typing import Any, Final, NewType, TypeVar, get_args, get_type_hints

from delosmq.manage.messages import errors
from delosmq.security.access import Login

Int = NewType("Int", int)
Long = NewType("Long", int)
"""Java's whole numbers of 32 and 64 bits."""

StringMap = dict[str, str]
"""A Java Map of texts."""

Work = Generator[int, None, Any]
"""Long work: yields ns to rest, 0 for none."""

F = TypeVar("F", bound=Callable[..., Any])

_JAVA_NAMES: Final[dict[object, str]] = {str: "String", bool: "boolean", float: "double", Int: "int", Long: "long"}
_JAVA_NAMES[StringMap] = "Map"
_INT_BOUND: Final = 1 << 31
_LONG_BOUND: Final = 1 << 63


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation.

    Attributes:
        kind: the type, a key of Java's names.
        may_be_null: null is a value of it.
    """

    name: str
    kind: object
    may_be_null: bool

    @property
    def java_type(self) -> str:
        return _JAVA_NAMES[self.kind]

    def takes(self, value: object) -> bool:
        """Whether a value of JSON is one of this type."""
        if value is None:
            return self.may_be_null
        if isinstance(value, bool) or self.kind is bool:
            return self.kind is bool and isinstance(value, bool)
        if self.kind is str:
            return isinstance(value, str)
        if self.kind == StringMap:
            return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
        if self.kind is float:
            return isinstance(value, int | float)
        bound = _INT_BOUND if self.kind is Int else _LONG_BOUND
        return isinstance(value, int) and -bound <= value < bound


@dataclass(frozen=True)
class DeclaredAttribute:
    """What can be read.

    Attributes:
        getter: by which it can be called as well.
        read: takes the resource and the login.
    """

    name: str
    getter: str
    read: Callable[..., Any]


@dataclass(frozen=True)
class DeclaredOperation:
    """What can be called with these arguments; others of the same name take others.

    Attributes:
        run: takes the resource, the login and the arguments.
    """

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[..., Any]

    @property
    def declaration(self) -> str:
        """As Java writes it, such as ``pause(boolean persist)``."""
        return f"{self.name}({', '.join(f'{one.java_type} {one.name}' for one in self.parameters)})"


_DECLARED: Final[dict[object, tuple[str, bool]]] = {}
"""By method: the name, and whether it is one of an operation."""


def attribute(name: str) -> Callable[[F], F]:
    """Declares that the method below reads an attribute."""

    def declared(method: F) -> F:
        _DECLARED[method] = (name, False)
        return method

    return declared


def operation(name: str) -> Callable[[F], F]:
    """Declares that the method below carries out an operation; its annotations say what it takes."""

    def declared(method: F) -> F:
        _DECLARED[method] = (name, True)
        return method

    return declared


class ResourceKind:
    """One resource, or all whose names begin alike.

    Attributes:
        prefix: such as ``queue.``; the whole name of a resource that there is once.
        find: of a login and the name behind the prefix the resource, an instance of ``kind``; raises NotFoundError or
            PermissionDeniedError.
        attributes: by name; operations: by name, those with other arguments beside each other.
    """

    def __init__(
        self,
        prefix: str,
        kind: type[Any],
        find: Callable[[Login, str], Any],
        *,
        info: type[Any] | None = None,
        fields: dict[str, str] | None = None,
    ) -> None:
        """
        Args:
            kind: the class that declares attributes and operations.
            info: what its method ``info(login)`` gives; fields: attribute -> field of that.
        """
        self.prefix = prefix
        self.find = find
        self._kind = kind
        self._info = info
        self._fields = fields or {}

    @cached_property
    def _declared(self) -> "_Declarations":
        """Read when first asked for: it takes milliseconds, and most brokers of tests are never asked."""
        return _Declarations(self._kind, self._info, self._fields)

    @property
    def attributes(self) -> dict[str, DeclaredAttribute]:
        return self._declared.attributes

    @property
    def operations(self) -> dict[str, list[DeclaredOperation]]:
        return self._declared.operations

    def takes(self, name: str) -> bool:
        """Whether a resource of this name is one of these."""
        return name.startswith(self.prefix) if self.prefix.endswith(".") else name == self.prefix

    def attribute(self, resource: str, name: str) -> DeclaredAttribute:
        """The attribute of a name, of which the first letter may be small.

        Raises:
            MisuseError: there is none.
        """
        found = self.attributes.get(name[:1].upper() + name[1:])
        if found is None:
            raise errors.unknown_attribute(resource, name)
        return found

    def method(self, resource: str, name: str, arguments: list[Any]) -> Callable[..., Any]:
        """What carries out an operation with these arguments: takes the resource, the login and them.

        Raises:
            MisuseError: there is none, or it takes others.
        """
        known = self.operations.get(name, [])
        for one in known:
            if len(one.parameters) == len(arguments) and all(
                parameter.takes(value) for parameter, value in zip(one.parameters, arguments, strict=True)
            ):
                return one.run
        getter = self._declared.getters.get(name)
        if getter is not None and not arguments:
            return getter.read
        declarations = [one.declaration for one in known] + ([] if getter is None else [f"{name}()"])
        if not declarations:
            raise errors.unknown_operation(resource, name)
        raise errors.wrong_arguments(resource, name, declarations)


class _Declarations:
    """What the methods of a class declare, and the fields of what its ``info`` gives."""

    def __init__(self, kind: type[Any], info: type[Any] | None, fields: dict[str, str]) -> None:
        self.attributes: dict[str, DeclaredAttribute] = {}
        self.operations: dict[str, list[DeclaredOperation]] = {}
        self.getters: dict[str, DeclaredAttribute] = {}
        for method in vars(kind).values():
            if callable(method) and method in _DECLARED:
                self._declare(method)
        types = get_type_hints(info) if info is not None else {}
        for name, field_name in fields.items():
            self._add(name, types[field_name] is bool, _reader(field_name))

    def _declare(self, method: Callable[..., Any]) -> None:
        name, is_operation = _DECLARED[method]
        hints = get_type_hints(method)
        if not is_operation:
            self._add(name, hints["return"] is bool, method)
            return
        parameters = tuple(_parameter(one, hints[one]) for one in list(signature(method).parameters)[2:])
        self.operations.setdefault(name, []).append(DeclaredOperation(name, parameters, _by_position(method)))

    def _add(self, name: str, is_truth: bool, read: Callable[..., Any]) -> None:
        made = DeclaredAttribute(name, f"{'is' if is_truth else 'get'}{name}", read)
        self.attributes[name] = made
        self.getters[made.getter] = made


def _parameter(name: str, hint: Any) -> Parameter:
    choices = get_args(hint)
    kind = next((one for one in choices if one is not NoneType), hint)
    words = name.split("_")
    return Parameter(words[0] + "".join(word.title() for word in words[1:]), kind, may_be_null=NoneType in choices)


def _by_position(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with all arguments by position, as messages have them; those of long lists have names in Python."""
    parameters = list(signature(method).parameters.values())
    named = [one.name for one in parameters if one.kind is InspectedParameter.KEYWORD_ONLY]
    first = len(parameters) - len(named)
    if not named:
        return method

    def run(*arguments: Any) -> Any:
        return method(*arguments[:first], **dict(zip(named, arguments[first:], strict=True)))

    return run


def _reader(field_name: str) -> Callable[..., Any]:
    def read(resource: Any, login: Login) -> Any:
        value = getattr(resource.info(login), field_name)
        return None if value == "" else value

    return read
