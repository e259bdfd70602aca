"""The table of docs/requirements.md: which requirements are served, and by which tests.

A test cites what it checks in a comment inside or right above it: ``def test_...():  # RING-1, BROKER-2``.
A comment outside of any function speaks for its whole file. Only what some test cites is in the table.

    python tools/requirements.py            writes the table
    python tools/requirements.py --check    exit code 1 when the table is not what the tests say
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs", "requirements.md")
BEGIN = "<!-- written by tools/requirements.py: begin -->"
END = "<!-- written by tools/requirements.py: end -->"
ID = re.compile(r"\b(?:RING|ROUTE|TTL|EXCL|ACK|PIPE|CLUS|HA|BROKER)-[0-9]+\b")

AREAS = {
    "RING": "Ring queues",
    "ROUTE": "Connection routers",
    "TTL": "The life of a connection",
    "EXCL": "Dispatch",
    "ACK": "Acknowledgement",
    "PIPE": "Spark",
    "CLUS": "Several brokers",
    "HA": "Takeover",
    "BROKER": "The broker as a whole",
}
MEANINGS = {
    "RING-1": (
        "A queue delivers in order of arrival. In a ring of size N, a message added to a full ring pushes "
        "out the one at the head."
    ),
    "RING-2": "`ring-size` can be set on a queue: in broker.xml for both routing types, and when a queue is created.",
    "RING-3": (
        "`default-ring-size` of the address counts for queues that set none, those made automatically included."
    ),
    "RING-4": (
        "The ring can be changed while the queue is in use. Shrinking removes nothing; the queue grows no "
        "more, and shrinks as it is consumed."
    ),
    "RING-5": (
        "What is in delivery is outside the ring: it can't be pushed out, and counts in `messageCount` all the same."
    ),
    "RING-6": (
        "What a closed consumer held goes back to the head, the last delivered first; what no longer fits is "
        "dropped, which hits the oldest."
    ),
    "RING-7": "A rollback returns what its transaction acknowledged in the same way, ring included.",
    "RING-8": "A consumer's window bounds what is in delivery, and with it what is outside the ring.",
    "RING-9": (
        "Scheduled messages are counted in `messageCount` and `scheduledCount` and not in the ring; when due they go "
        "to the head, newest first, and are dropped if the ring is full."
    ),
    "RING-10": (
        "The full policies of the address come before the ring, a restart cuts a queue to its ring, and a ring on an "
        "address that pages is pointed out at start (nothing pages yet)."
    ),
    "RING-11": "What a ring pushes out is counted, reported as an event, and never a dead letter.",
    "ROUTE-1": "Targets: other brokers and this one. Keys: CLIENT_ID, SNI_HOST, SOURCE_IP, USER_NAME, ROLE_NAME.",
    "ROUTE-2": "`key-filter`, `local-target-filter`, and the key `NULL` of connections that have none.",
    "ROUTE-3": (
        "Pools of named connectors, or of the brokers that a discovery group finds, with login, check period, quorum "
        "and its timeout, and this broker as a target (no cluster pools yet)."
    ),
    "ROUTE-4": "The five policies with Artemis's hashes, and policies of other packages.",
    "ROUTE-5": "A cache that keeps keys with their targets, with a timeout, persisted on request.",
    "ROUTE-6": "The order of a decision; routers without a pool, which keep what belongs here and send the rest away.",
    "ROUTE-7": "`router=` and `protocols=` on acceptors; OpenWire and STOMP clients are told where to go.",
    "ROUTE-8": "Where a key belongs, by HTTP and management messages; filters that are changed while the broker runs.",
    "ROUTE-9": "The routers of Artemis's manual and the programs of its examples, with brokers as processes.",
    "CLUS-1": "Brokers announce themselves and are found by UDP as Artemis's are; who falls silent is missed.",
    "HA-1": (
        "Two brokers on one shared directory: one is active; the backup takes over what a killed primary had "
        "confirmed, and makes way when the primary is back."
    ),
    "HA-2": (
        "The same on tables in PostgreSQL, fenced in each commit: a paused primary wakes up and confirms nothing more; "
        "the database killed, slow, full or read-only holds up confirmations and loses none."
    ),
    "TTL-1": (
        "A connection from which nothing comes within its TTL is closed, and its subscriptions with it "
        "(STOMP: the TTL follows from the heart-beats)."
    ),
    "TTL-2": "`connection-ttl-override` and `connection-ttl-check-interval` are obeyed.",
    "TTL-3": (
        "A client may connect again and find its session as it was before the TTL ends (CORE, with a confirmation "
        "window)."
    ),
    "TTL-4": "The client's connections, sessions, producers and consumers end with their with or async with block.",
    "TTL-5": "The client's forgotten connections and sessions are closed; a warning names where they were made.",
    "TTL-6": (
        "A broker that is silent for too long is noticed by the client, which goes to the next one of its list, or "
        "tells its exception listener."
    ),
    "EXCL-1": "One exclusive consumer gets everything in order; when it leaves, the next one does.",
    "EXCL-2": "Another takes over only with a strictly higher priority, or with 127, always.",
    "EXCL-3": (
        "Messages go one by one to the next consumer in turn that is not full and takes them, highest priority first; "
        "who browses takes nothing."
    ),
    "EXCL-4": (
        "Message groups with rebalance, buckets and first key; waiting for consumers; strict order, consumer "
        "priorities off, all consumers exclusive; exclusive queues."
    ),
    "ACK-1": (
        "Automatic, cumulative and individual acknowledgement (STOMP: `auto`, `client`, `client-individual`); in the "
        "engine what Classic's clients call DELIVERED, POISON and EXPIRED too. The client's modes and types are those "
        "of the Java client."
    ),
    "ACK-2": (
        "Broker's side: a prefetch that grows with what is reported as delivered; 0 gives what is pulled. Client's "
        "side: optimizeAcknowledge with its thresholds and times, a prefetch for each kind of consumer, 0 as a pull."
    ),
    "ACK-3": "A session has listeners or receive(), never both; a listener with prefetch 0 is an error.",
    "ACK-4": (
        "Broker's side: a returned message waits as its address says; one that was returned as often as "
        "`max-delivery-attempts` allows goes to the dead-letter address. Client's side: delays, back-off, and POISON "
        "after the last redelivery."
    ),
    "ACK-5": (
        "Local and XA transactions: sends and acknowledgements all or nothing, across a crash too; a rollback "
        "redelivers and counts; a prepared branch waits for its coordinator."
    ),
    "ACK-6": "Options of the client stand in the URL (`jms.*`) and behind a destination (`?consumer.*`), which wins.",
    "ACK-7": (
        "A consumer that does not keep up stops no other; a producer with a full address waits, and only it. "
        "The client sends with and without waiting, within a producer window."
    ),
    "PIPE-1": (
        "Streaming and batch sources and sinks for queues and topics: no message lost, each one exactly once in the "
        "archive or in the queue that is written."
    ),
    "PIPE-2": (
        "`delosmq spark archive` writes queues and topics to Parquet or Delta Lake, each message once for any reader; "
        "`delosmq spark compact` puts small files together; `audit` counts what was lost, doubled and slow; "
        "`triage` groups dead letters, `redrive` sends them back, `replay` sends what was archived again, each once."
    ),
    "PIPE-3": "The same code on `local[*]` and on executors of their own; several readers; batches of bounded size.",
    "PIPE-4": (
        "A broker without leases, as ActiveMQ Classic and Artemis, is read over OpenWire: at least once, with ids of "
        "messages to recognise what comes again."
    ),
    "BROKER-1": (
        "What was confirmed is there after kill -9 and power cuts, what was acknowledged does not come back; "
        "memory is bounded."
    ),
    "BROKER-2": (
        "STOMP 1.0, 1.1 and 1.2 with unmodified clients, the protocol found by its first bytes (no others yet)."
    ),
    "BROKER-3": "broker.xml as Artemis writes it; what is wrong is named with file, line and the nearest known name.",
    "BROKER-4": (
        "Users, roles and permissions per address; login always; TLS with client certificates; hostile bytes close one "
        "connection, no other (no SNI yet)."
    ),
    "BROKER-5": "Command line, HTTP API, health and Prometheus metrics (no console yet).",
    "BROKER-6": "`with delosmq.Broker() as broker:` in any Python process, several at once.",
}
"""What the ids ask for, as far as it is served."""

Served = dict[str, list[str]]


def citations(path: Path, root: Path) -> Served:
    """Id -> names of tests in ``path`` that cite it; the file alone when it does as a whole."""
    text = path.read_text("utf-8")
    place = path.relative_to(root).as_posix()
    spans = _test_spans(ast.parse(text))
    found: Served = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        name = _test_at(token.start[0], spans)
        cited = f"{place}::{name}" if name else place
        for requirement in ID.findall(token.string):
            tests = found.setdefault(requirement, [])
            if cited not in tests:
                tests.append(cited)
    return found


def _test_spans(tree: ast.Module) -> list[tuple[int, int, str]]:
    """First line (with decorators), last line and name of each test function."""
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            spans.append((first, node.end_lineno or node.lineno, node.name))
    return spans


def _test_at(line: int, spans: list[tuple[int, int, str]]) -> str:
    for first, last, name in spans:
        if first - 1 <= line <= last:
            return name
    return ""


def served(root: Path) -> Served:
    """Id -> all tests below ``root``/tests that cite it, in the order of files and lines."""
    merged: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for requirement, tests in citations(path, root).items():
            merged[requirement] += tests
    return dict(merged)


def table(found: Served) -> str:
    """The part of the page that is written by this program.

    Raises:
        ValueError: a test cites an id that has no meaning here.
    """
    if unknown := sorted(set(found) - set(MEANINGS)):
        raise ValueError(
            f"tests cite {', '.join(unknown)}: say what that asks for in MEANINGS of tools/requirements.py"
        )
    parts = [BEGIN, ""]
    for area, title in AREAS.items():
        ids = sorted((name for name in found if name.startswith(f"{area}-")), key=lambda name: int(name.split("-")[1]))
        if not ids:
            continue
        parts += [f"## {title}", "", "| id | what it asks for | tests |", "|---|---|---|"]
        for name in ids:
            parts.append(f"| {name} | {MEANINGS[name]} | {_tests(found[name])} |")
        parts.append("")
    return "\n".join([*parts, END])


def _tests(cited: list[str]) -> str:
    """A cell: each file with the names of its tests."""
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for place in cited:
        file, _, name = place.partition("::")
        by_file[file] += [name.removeprefix("test_")] if name else []
    cells = []
    for file, names in by_file.items():
        link = f"[{file.removeprefix('tests/')}](../{file})"
        cells.append(f"{link}: {', '.join(name.replace('_', ' ') for name in names)}" if names else link)
    return "<br>".join(cells)


def renewed(page: str, found: Served) -> str:
    """The page with its table as it should be.

    Raises:
        ValueError: the page has lost the marks around the table.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} has no '{BEGIN}' followed by '{END}': put both lines back")
    return f"{before}{table(found)}{after}"


def main(arguments: list[str]) -> None:
    path = ROOT / PAGE
    page = path.read_text("utf-8")
    try:
        wanted = renewed(page, served(ROOT))
    except ValueError as error:
        sys.exit(str(error))
    if wanted == page:
        return
    if "--check" in arguments:
        sys.exit(f"{PAGE} is not what the tests say: run python tools/requirements.py")
    path.write_text(wanted, "utf-8")
    print(f"{PAGE} written")


if __name__ == "__main__":
    main(sys.argv[1:])
