"""Writes docs/errors.md, the table of all codes, from the code itself: `PYTHONPATH=. python -m tools.errors_page`.

A code stands where its error is raised, its line logged or its sentence declared, beside the class and the sentence, of
which the type checker sees the parameters. This reads them there, so that there is no second list to keep.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from tools.architecture import codes_of
from tools.source_files import ROOT, SourceFile, read_tree

PAGE: Final = ROOT / "docs" / "errors.md"
SECTIONS: Final = {
    "STOMP: frames": "wire/stomp/",
    "STOMP: commands": "sessions/stomp/",
    "OpenWire: frames": "wire/openwire/",
    "CORE: frames": "wire/core/",
    "OpenWire: commands": "sessions/openwire/server/",
    "CORE: packets": "sessions/core/server/",
    "Leases": "sessions/lease/",
    "Staging": "sessions/staging/",
    "The Python client: what the broker says": "sessions/openwire/client/",
    "The Python client: what a program asks for": "client/",
    "Sessions of all protocols": "sessions/",
    "Queues, addresses and transactions": "engine/",
    "Names and messages": "model/",
    "Selectors": "selectors/",
    "Logins and permissions": "security/",
    "The store in PostgreSQL": "storage/postgres/",
    "The journal": "storage/",
    "Configuration": "config/",
    "Connection routers": "routers/",
    "Discovery": "cluster/",
    "Conversion of activemq.xml": "migration/",
    "Connections": "server/",
    "HTTP": "manage/http/",
    "Management": "manage/",
    "A broker in a program": "embedded/",
    "Spark": "spark/",
    "Command line": "cli/",
    "The broker as a whole": "",
}
"""What a section holds: the files below a folder of src/delosmq that no section before it has."""
PROTOCOLS: Final = 6
"""Sections of errors that a client is told of, with what they end and the exception of Java."""
MOST_SENTENCES: Final = 4
"""Of one code, on the page."""
HEAD: Final = """# Codes of errors and log lines

Each error and each line of the log has a code that stays the same from version to version; the sentence after it may
become better. `{}` holds the name of what a sentence names. Made from the code by `python -m tools.errors_page`.

What the protocols tell clients comes first. Over STOMP it is an ERROR frame; over OpenWire an exception, of which Java
clients get the class that is named here; over CORE an EXCEPTION with the code that is named here, but for what is wrong
with a frame, which nothing tells. Where nothing stands below "ends", nothing ends by it: it is for the log.

What the engine refuses is told over any protocol and over HTTP alike. Of these and all others the tables say as what
they come: as an error, with its class in Python (`MisuseError` of a call or setting that makes no sense, `LimitError`
of a limit, `NotFoundError` of something that is not there, `StorageError` of the disk); as a mistake or a notice about
a file of the configuration; as a reason for which the broker is not ready (health); or in the log. What of the log is
worth an alert is in [logging](how-to/logging.md); mistakes in broker.xml are in
[configuration](configuration.md#check).
"""
COMES_AS: Final = {
    "add": "mistake",
    "stop": "mistake",
    "refuse": "mistake",
    "ignore": "notice",
    "notice": "notice",
    "Notice": "notice",
    "Finding": "mistake",
    "critical": "log, critical",
    "error": "log, error",
    "exception": "log, error",
    "warning": "log, warning",
    "info": "log, info",
    "Reason": "health",
}
ENDS: Final = {"CONNECTION": "the connection", "SESSION": "the session", "LINK": "the command"}
BARE: Final = re.compile(r"{\w+}")
NO_USES: Final = (ast.Compare, ast.Assign, ast.AnnAssign, ast.Set)


@dataclass(frozen=True, order=True)
class Row:
    """One code and one sentence of it."""

    code: str
    says: str
    comes_as: str
    ends: str = ""
    condition: str = ""


@dataclass
class Code:
    """What the tables are made from: every file, and what its names stand for."""

    files: list[SourceFile]
    constants: dict[tuple[str, str], ast.expr] = field(default_factory=dict)
    homes: dict[ast.AST, SourceFile] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    uses: defaultdict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for file in self.files:
            self.homes[file.tree] = file
            for node in file.nodes:
                self.parents.update((child, node) for child in ast.iter_child_nodes(node))
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    self.uses[node.id].append(node)
            for statement in file.tree.body:
                for name, value in assigned(statement):
                    self.constants[file.module, name] = value

    def home_of(self, node: ast.AST) -> SourceFile:
        """The file that a node stands in."""
        while node in self.parents:
            node = self.parents[node]
        return self.homes[node]

    def constant(self, name: str, place: ast.AST) -> tuple[str, ast.expr] | None:
        """The module and value of a constant of that name, as a file has or imports it."""
        file = self.home_of(place)
        modules = [file.module, *(full.rpartition(".")[0] for _, full in file.imports() if full.endswith(f".{name}"))]
        return next(
            ((known, self.constants[known, name]) for known in modules if (known, name) in self.constants), None
        )

    @cached_property
    def of_peers(self) -> set[str]:
        """The classes of errors below `PeerError`."""
        classes = [node for file in self.files for node in file.nodes if isinstance(node, ast.ClassDef)]
        return {one.name for one in classes if any(label_of(base) == "PeerError" for base in one.bases)}

    def function_around(self, node: ast.AST) -> ast.AST | None:
        while node in self.parents and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node = self.parents[node]
        return node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None

    # -- sentences

    def text_of(self, node: ast.AST | None) -> str:
        """What an expression says, with names in place of what is not known before it runs; "" when it is no text."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text_of(part) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            known = self._text_of_name(node.value, node) if isinstance(node.value, ast.Name) else ""
            quote = "'" if node.conversion == ord("r") else ""
            return known or f"{quote}{{{label_of(node.value)}}}{quote}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.text_of(node.left) + self.text_of(node.right)
        if isinstance(node, ast.IfExp):
            return self.text_of(node.body)
        if isinstance(node, ast.Name):
            return self._text_of_name(node, node) or f"{{{node.id}}}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for function in self.home_of(node).functions:
                if function.name == node.func.id and isinstance(function.body[-1], ast.Return):
                    return self.text_of(function.body[-1].value)
        return f"{{{label_of(node)}}}" if isinstance(node, ast.Call | ast.Attribute | ast.Subscript) else ""

    def _text_of_name(self, name: ast.Name, place: ast.AST) -> str:
        """Of a name that is assigned once in the function around ``place``, or is a constant."""
        around = self.function_around(place)
        if around is not None:
            found = [value for node in ast.walk(around) for known, value in assigned(node) if known == name.id]
            if len(found) > 1 and isinstance(place, ast.FormattedValue):
                return ""
            before = [value for value in found if value.lineno <= name.lineno]
            if found:
                last = max(before or found, key=lambda value: value.lineno)
                return self.text_of(last) if isinstance(last, ast.Constant | ast.JoinedStr) else ""
        known = self.constant(name.id, place) if name.id.lstrip("_").isupper() else None
        value = None if known is None else known[1]
        if isinstance(value, ast.Constant) and not isinstance(value.value, str):
            return str(value.value)
        return self.text_of(value) if isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp) else ""

    # -- rows

    def rows_of(self, node: ast.AST, code: str) -> Iterator[Row]:
        """What is said of a code where it stands, or is used by its name."""
        above = self.parents[node]
        if isinstance(above, ast.keyword | ast.IfExp):
            node, above = above, self.parents[above]
        if isinstance(node, ast.keyword):
            node = node.value
        decorated = self.parents.get(above)
        if isinstance(above, ast.Call) and isinstance(decorated, ast.FunctionDef) and above in decorated.decorator_list:
            yield self._declared(decorated, above, code)
        elif isinstance(above, ast.Call) and node in (*above.args, *(one.value for one in above.keywords)):
            yield from self._called(above, code, node)
        elif isinstance(node, ast.Constant) and isinstance(above, ast.Assign | ast.AnnAssign):
            yield from self._named(above, code)
        elif isinstance(above, ast.Tuple):
            classes = [label_of(one) for one in above.elts if label_of(one).endswith("Error")]
            said = max((self.text_of(one) for one in above.elts if one is not node), key=len)
            if classes:
                remedy = next((one for one in above.elts if one is not node and isinstance(one, ast.Constant)), None)
                said = f"{{detail}} {self.text_of(remedy)}".strip()
            yield Row(code, said, classes[0] if classes else "notice")
        else:
            text = self._whole(node)
            if text.startswith(f"{code}: "):
                yield Row(code, text.removeprefix(f"{code}: "), self._kind_around(node))

    def _whole(self, node: ast.AST) -> str:
        """The text that a part of an f-string belongs to."""
        around = self.parents[node]
        if isinstance(around, ast.FormattedValue):
            around = self.parents[around]
        return self.text_of(around if isinstance(around, ast.JoinedStr) else node)

    def _kind_around(self, node: ast.AST) -> str:
        while node in self.parents and not isinstance(node, ast.Call | ast.stmt):
            node = self.parents[node]
        return self._kind_of(node.func) if isinstance(node, ast.Call) else "log"

    def _kind_of(self, called: ast.expr) -> str:
        name = label_of(called)
        if name in COMES_AS or name.endswith("Error"):
            return COMES_AS.get(name, name)
        for file in self.files:
            for function in file.functions:
                if function.name == name and isinstance(function.returns, ast.Name):
                    kind = function.returns.id
                    return kind if kind.endswith("Error") else "log"
        return "log"

    def _called(self, call: ast.Call, code: str, node: ast.AST) -> Iterator[Row]:
        given = [*call.args, *(one.value for one in call.keywords)]
        text = self.text_of(node)
        if text.startswith(f"{code}: "):
            yield Row(code, text.removeprefix(f"{code}: "), self._kind_of(call.func))
            return
        said = max((self.text_of(one) for one in given if one is not node), key=len, default="")
        kinds = [one.attr.lower() for one in given if isinstance(one, ast.Attribute) and label_of(one.value) == "Kind"]
        yield Row(code, said, kinds[0] if kinds else self._kind_of(call.func))

    def _declared(self, function: ast.FunctionDef, decorator: ast.Call, code: str) -> Row:
        """A sentence that a function says."""
        said = next(self.text_of(part.value) for part in ast.walk(function) if isinstance(part, ast.Return))
        maker = label_of(decorator.func)
        if maker == "error_of":
            kind = label_of(decorator.args[1])
            return Row(code, said, kind, ENDS["CONNECTION"] if kind in self.of_peers else "")
        ends, condition = ("LINK", "JMSException") if maker == "openwire_error" else ("CONNECTION", "")
        if maker == "core_error":
            ends = "LINK"
        for given in (*decorator.args[1:], *(one.value for one in decorator.keywords)):
            if isinstance(given, ast.Attribute) and label_of(given.value) == "CoreErrorCode":
                condition = given.attr
            elif isinstance(given, ast.Attribute):
                ends = given.attr
            elif isinstance(given, ast.Name) and (known := self.constant(given.id, given)) is not None:
                condition = self.text_of(known[1]).rpartition(".")[2] or condition
        return Row(code, said, "", ENDS.get(ends, ""), condition)

    def _named(self, constant: ast.AST, code: str) -> Iterator[Row]:
        name, value = next(assigned(constant))
        general = f"{name.lower().replace('_', ' ')}: {{sentence}}"
        if isinstance(self.parents[constant], ast.ClassDef):
            yield Row(code, general, "remark")
        for use in self.uses[name]:
            known = self.constant(name, use)
            if known is not None and known[1] is value and not isinstance(self.parents[use], NO_USES):
                for row in self.rows_of(use, code):
                    yield replace(row, says=general) if BARE.fullmatch(row.says) else row


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The name and value of an assignment."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def label_of(node: ast.AST | None) -> str:
    """The name that stands for a value: the last one of a path, or that of what a function is called with first."""
    if isinstance(node, ast.Name):
        return node.id.lstrip("_")
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_")
    if isinstance(node, ast.Subscript):
        return label_of(node.value)
    if isinstance(node, ast.BinOp):
        return label_of(node.left)
    if isinstance(node, ast.BoolOp):
        return label_of(node.values[0])
    if isinstance(node, ast.IfExp):
        return label_of(node.body)
    if isinstance(node, ast.Call):
        return next((found for one in node.args if (found := label_of(one)) != "..."), label_of(node.func))
    return "..."


def table() -> dict[str, list[Row]]:
    """The rows of each section, in order of their codes; a code whose sentence can't be read has none."""
    files = list(read_tree(ROOT, ("src",)))
    code = Code(files)
    found: dict[str, list[Row]] = {title: [] for title in SECTIONS}
    for file in files:
        inside = file.path.partition("src/delosmq/")[2]
        rows = found[next(title for title, folder in SECTIONS.items() if inside.startswith(folder))]
        known = {known for _, known in codes_of(file)}
        for node in file.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value[:7] in known:
                rows += code.rows_of(node, node.value[:7])
    return {title: list(shortened(sorted(set(rows)))) for title, rows in found.items()}


def shortened(rows: Iterable[Row]) -> Iterator[Row]:
    """Of codes with many sentences the first few."""
    count: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        count[row.code] += bool(row.says)
        if row.says and count[row.code] <= MOST_SENTENCES:
            yield row


def page() -> str:
    """The page as it should be."""
    parts = [HEAD]
    for number, (title, rows) in enumerate(table().items()):
        columns = ["code", "ends", "exception", "says"] if number < PROTOCOLS else ["code", "comes as", "says"]
        lines = [f"## {title}", "", line_of(columns), "|" + "---|" * len(columns)]
        for row in rows:
            says = re.sub(r"([\\*<|])", r"\\\1", " ".join(row.says.split()))
            exception = f"`{row.condition}`" if row.condition else row.comes_as
            told = [row.ends, exception] if number < PROTOCOLS else [row.comes_as]
            lines.append(line_of([row.code, *told, says]))
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def line_of(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
