"""Random expressions, written out and read again, mean what an evaluator of a few lines says they mean."""

from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from delosmq.model.properties import PropertyValue
from tests.selectors.support import holds

Value = PropertyValue | None
NAMES = ("a", "b", "c", "$d")


@dataclass(frozen=True)
class Tree:
    """An operator on trees, or a leaf: a name or a constant."""

    kind: str
    parts: tuple["Tree", ...] = ()
    leaf: Value = None


def written(tree: Tree) -> str:
    parts = [written(part) for part in tree.parts]
    match tree.kind:
        case "name":
            return str(tree.leaf)
        case "constant":
            return constant(tree.leaf)
        case "NOT" | "negative":
            return f"({'NOT' if tree.kind == 'NOT' else '-'} {parts[0]})"
        case "IS NULL" | "IS NOT NULL":
            return f"({parts[0]} {tree.kind})"
        case "BETWEEN" | "NOT BETWEEN":
            return f"({parts[0]} {tree.kind} {parts[1]} AND {parts[2]})"
        case "IN" | "NOT IN":
            return f"({parts[0]} {tree.kind} ({', '.join(parts[1:])}))"
        case _:
            return f"({f' {tree.kind} '.join(parts)})"


def constant(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None:
        return "NULL"
    return str(value).upper() if isinstance(value, bool) else repr(value)


def kind_of(value: Value) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__


def meaning(tree: Tree, given_values: dict[str, PropertyValue]) -> Value:
    if tree.kind == "name":
        return given_values.get(str(tree.leaf))
    if tree.kind == "constant":
        return tree.leaf
    values = [meaning(part, given_values) for part in tree.parts]
    match tree.kind:
        case "AND":
            return False if any(v is False for v in values) else None if None in values else True
        case "OR":
            return True if any(v is True for v in values) else None if None in values else False
        case "NOT":
            return opposite(values[0])
        case "IS NULL":
            return values[0] is None
        case "IS NOT NULL":
            return values[0] is not None
        case "BETWEEN":
            return meaning(all_of((values[0], ">=", values[1]), (values[0], "<=", values[2])), {})
        case "NOT BETWEEN":
            low = meaning(all_of((values[0], "<", values[1])), {})
            high = meaning(all_of((values[0], ">", values[2])), {})
            return True if True in (low, high) else None if None in (low, high) else False
        case "IN" | "LIKE":
            return None if values[0] is None else isinstance(values[0], str) and values[0] in values[1:]
        case "NOT IN" | "NOT LIKE":
            return None if values[0] is None else not (isinstance(values[0], str) and values[0] in values[1:])
    return calculated(tree.kind, values)


def all_of(*comparisons: tuple[Value, str, Value]) -> Tree:
    leaves = [
        Tree(operator, (Tree("constant", leaf=left), Tree("constant", leaf=right)))
        for left, operator, right in comparisons
    ]
    return Tree("AND", tuple(leaves))


def opposite(value: Value) -> Value:
    return None if value is None else not value


def calculated(operator: str, values: list[Value]) -> Value:
    if None in values:
        return None
    if operator == "negative":
        (value,) = values
        return wrap(-value) if kind_of(value) == "number" else None  # type: ignore[operator]
    left, right = values
    if operator in ("+", "-", "*"):
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return left + right
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
        if isinstance(left, bool) or isinstance(right, bool):
            return None
        return wrap(left + right if operator == "+" else left - right if operator == "-" else left * right)
    if operator == "<>":
        return opposite(calculated("=", values))
    if kind_of(left) != kind_of(right) or kind_of(left) == "bytes":
        return False
    order = (left > right) - (left < right)  # type: ignore[operator]
    return order in {"=": (0,), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[operator]


def wrap(number: int | float) -> int | float:
    return (number + 2**63) % 2**64 - 2**63 if isinstance(number, int) else number


NUMBERS = st.one_of(st.integers(0, 5), st.integers(0, 2**63 - 1), st.sampled_from([0.0, 0.5, 2.0, 9007199254740992.0]))
TEXTS = st.sampled_from(["", "a", "b", "it's", "ab"])


def leaf(kind: str, leaves: st.SearchStrategy[Value]) -> st.SearchStrategy[Tree]:
    return leaves.map(lambda value: Tree(kind, leaf=value))


def operation(kinds: list[str], *parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.tuples(st.sampled_from(kinds), st.tuples(*parts)).map(lambda made: Tree(made[0], made[1]))


NAME = leaf("name", st.sampled_from(NAMES))
NUMBER = st.recursive(
    st.one_of(NAME, leaf("constant", NUMBERS)),
    lambda inner: st.one_of(operation(["+", "-", "*"], inner, inner), operation(["negative"], inner)),
    max_leaves=4,
)
TEXT = st.one_of(NAME, leaf("constant", TEXTS))
SIMPLE = st.one_of(
    NAME,
    leaf("constant", st.sampled_from([True, False, None])),
    operation(["=", "<>", "<", "<=", ">", ">="], NUMBER, NUMBER),
    operation(["=", "<>"], TEXT, TEXT),
    operation(["="], operation(["+"], TEXT, TEXT), TEXT),
    operation(["IS NULL", "IS NOT NULL"], st.one_of(NAME, NUMBER)),
    operation(["BETWEEN", "NOT BETWEEN"], NUMBER, NUMBER, NUMBER),
    operation(["IN", "NOT IN"], NAME, leaf("constant", TEXTS), leaf("constant", TEXTS)),
    operation(["LIKE", "NOT LIKE"], NAME, leaf("constant", TEXTS)),
)


def flags_as_conditions(tree: Tree) -> Tree:
    """A name where a condition is wanted holds when it is true, and does not when it is something else."""
    if tree.kind == "name":
        return Tree("=", (tree, Tree("constant", leaf=True)))
    return tree


def conditions(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        operation(["AND", "OR"], inner, inner),
        operation(["AND", "OR"], inner, inner, inner),
        operation(["NOT"], inner),
    )


CONDITION = st.recursive(SIMPLE, conditions, max_leaves=12)


def as_condition(tree: Tree) -> Tree:
    if tree.kind in ("AND", "OR", "NOT"):
        return Tree(tree.kind, tuple(flags_as_conditions(as_condition(part)) for part in tree.parts))
    return tree


PROPERTIES = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(st.booleans(), NUMBERS, st.integers(-(2**63), -1), TEXTS, st.just(b"a"))
)


@given(CONDITION, PROPERTIES)
@example(Tree("<", (Tree("name", leaf="a"), Tree("constant", leaf=9007199254740992.0))), {"a": 9007199254740993})
def test_what_is_written_means_the_same_when_read(tree: Tree, values: dict[str, PropertyValue]) -> None:
    assert holds(written(tree), **values) is meaning(flags_as_conditions(as_condition(tree)), values)
