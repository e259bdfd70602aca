"""``<store>``: a journal, or tables in PostgreSQL."""

import re
from typing import Any, Final
from urllib.parse import unquote

from delosmq.config.broker_xml.catalog.database_store import DATABASE_STORE, STORE
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING, TWICE, WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.declared.database_store import DATABASE_SETTINGS, parse_table_name
from delosmq.model.settings import DatabaseStoreSettings

DRIVER: Final = "org.postgresql.Driver"
_SCHEME: Final = "jdbc:postgresql:"
_FORM: Final = "jdbc:postgresql://host:5432/database"
MOST_COUNTED_FILE_BYTES: Final = 256 * 1024 * 1024
"""Of `journal-file-size`, by which the engine bounds messages and transactions."""
_DEFAULT_PORT: Final = "5432"
_MOST_PORT: Final = 65_535
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_TABLES: Final = ("instance_table", "bindings_table", "messages_table", "bodies_table")
_MASKED: Final = "ENC("

# Parameters of pgjdbc's URL -> libpq's option of the same meaning.
_SAME: Final = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "gssEncMode": "gssencmode",
    "channelBinding": "channel_binding",
}
_SESSIONS: Final = {"any": "any", "primary": "read-write", "master": "read-write"}
_WITHOUT_MEANING: Final = frozenset({"ApplicationName", "tcpKeepAlive", "reWriteBatchedInserts", "stringtype"})
"""Accepted: what they ask for holds, or concerns Java alone."""
_KNOWN: Final = [*_SAME, "ssl", "currentSchema", "targetServerType", *sorted(_WITHOUT_MEANING)]


def read_store(reader: Reader, element: XmlElement) -> DatabaseStoreSettings | None:
    """The database, or None for the journal."""
    found = reader.children(element, STORE)
    if not element.children:
        sentence = "<store> is empty; write <database-store> or <file-store/> in it, or remove it"
        reader.findings.add(MISSING, element.line, sentence)
    for more in found[1:]:
        sentence = f"<{more.name}> beside <{found[0].name}> in line {found[0].line}; keep one of the two"
        reader.findings.add(TWICE, more.line, sentence)
    if not found or found[0].name == "file-store":
        return None
    return _read_database(reader, found[0])


def _read_database(reader: Reader, element: XmlElement) -> DatabaseStoreSettings | None:
    inner = reader.once(reader.children(element, DATABASE_STORE))
    if "jdbc-driver-class-name" in inner:
        reader.value(inner["jdbc-driver-class-name"], _parse_driver, "")
    url = inner.get("jdbc-connection-url")
    if url is None:
        sentence = f"<database-store> lacks <jdbc-connection-url>; write <jdbc-connection-url>{_FORM}</...> in it"
        reader.findings.add(MISSING, element.line, sentence.replace("</...>", "</jdbc-connection-url>"))
        return None
    options = _read_url(reader, url)
    standard = DatabaseStoreSettings("")
    declared: dict[str, Any] = {
        field: reader.value(inner[setting.written], setting.parse, getattr(standard, field))
        for field, setting in DATABASE_SETTINGS.items()
        if field not in ("url", "password") and setting.written in inner
    }
    settings = DatabaseStoreSettings(
        url=url.text, options=options, password=_read_password(reader, inner.get("jdbc-password")), **declared
    )
    _check_lease(reader, element, inner, settings)
    _check_tables(reader, element, settings)
    return settings


def _read_url(reader: Reader, element: XmlElement) -> tuple[tuple[str, str], ...]:
    reader.leaf(element)
    try:
        return parse_url(element.text)
    except ValueError as rule:
        # What it is may hold a password.
        reader.findings.add(WRONG_VALUE, element.line, f"<jdbc-connection-url> must be {rule}")
        return ()


def _read_password(reader: Reader, element: XmlElement | None) -> str:
    if element is None:
        return ""
    reader.leaf(element)
    if element.text.startswith(_MASKED):
        # The text itself is as good as the password: Artemis's key is the same everywhere.
        sentence = (
            "<jdbc-password> is masked by ENC(...), which can't be read here; write ${NAME} and set NAME in the "
            "environment, or remove it and put the password into PostgreSQL's password file (~/.pgpass)"
        )
        reader.findings.add(WRONG_VALUE, element.line, sentence)
    return element.text


def _check_lease(
    reader: Reader, element: XmlElement, inner: dict[str, XmlElement], settings: DatabaseStoreSettings
) -> None:
    if settings.lock_renew_period_ms * 2 < settings.lock_expiration_ms:
        return
    line = inner.get("jdbc-lock-renew-period", inner.get("jdbc-lock-expiration", element)).line
    sentence = (
        f"jdbc-lock-renew-period is {settings.lock_renew_period_ms} and jdbc-lock-expiration "
        f"{settings.lock_expiration_ms}: a lease must outlast two renewals; make the one smaller or the other larger"
    )
    reader.findings.add(CONTRADICTION, line, sentence)


def _check_tables(reader: Reader, element: XmlElement, settings: DatabaseStoreSettings) -> None:
    seen: set[str] = set()
    for field in _TABLES:
        name = getattr(settings, field).lower()
        if name in seen:
            sentence = f"two tables of <database-store> are called '{name}' (case does not count); rename one of them"
            reader.findings.add(TWICE, element.line, sentence)
        seen.add(name)


def _parse_driver(text: str) -> str:
    if text != DRIVER:
        raise ValueError(f"{DRIVER}: PostgreSQL is the only database that messages can be kept in")
    return text


def parse_url(text: str) -> tuple[tuple[str, str], ...]:
    """The URL of a database, as pgjdbc has it, as libpq's options.

    Raises:
        ValueError: what it must be.
    """
    if not text.startswith(_SCHEME):
        raise ValueError(f"{_FORM}: PostgreSQL is the only database that messages can be kept in")
    place, _, query = text.removeprefix(_SCHEME).partition("?")
    if place.startswith("//"):
        hosts, slash, database = place.removeprefix("//").partition("/")
    else:
        hosts, slash, database = "", "/", place
    if not slash or not database or "/" in database:
        raise ValueError(f"{_FORM}, with the name of a database after the host")
    options = _parse_hosts(hosts or "localhost")
    options["dbname"] = unquote(database)
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        _take_parameter(options, name, unquote(value))
    return tuple(options.items())


def _parse_hosts(text: str) -> dict[str, str]:
    if "@" in text:
        raise ValueError(f"{_FORM} without a user in it; write <jdbc-user> and <jdbc-password>")
    hosts: list[str] = []
    ports: list[str] = []
    for one in text.split(","):
        found = _HOST.fullmatch(one)
        port = "" if found is None else found["port"] or _DEFAULT_PORT
        if found is None or not 0 < int(port) <= _MOST_PORT:
            raise ValueError(f"{_FORM}, with hosts and ports such as db1:5432,db2:5432")
        hosts.append(found["host"].strip("[]"))
        ports.append(port)
    return {"host": ",".join(hosts), "port": ",".join(ports)}


def _take_parameter(options: dict[str, str], name: str, value: str) -> None:
    if name in _SAME:
        options[_SAME[name]] = value
    elif name == "ssl":
        if value.lower() not in ("", "true", "false"):
            raise ValueError("one with ssl=true or ssl=false")
        if value.lower() != "false":
            options.setdefault("sslmode", "verify-full")
    elif name == "currentSchema":
        schemas = value.split(",")
        for schema in schemas:
            parse_schema(schema)
        options["options"] = f"-c search_path={','.join(schemas)}"
    elif name == "targetServerType":
        if value not in _SESSIONS:
            raise ValueError("one with targetServerType=primary or any: a standby takes no messages")
        options["target_session_attrs"] = _SESSIONS[value]
    elif name in ("user", "password"):
        raise ValueError(f"one without {name}=; write <jdbc-{name}> beside it")
    elif name not in _WITHOUT_MEANING:
        raise ValueError(f"one without the parameter {name!r}, which has no meaning here{nearest(name, _KNOWN)}")


def parse_schema(text: str) -> str:
    """The name of a schema."""
    try:
        return parse_table_name(text)
    except ValueError:
        raise ValueError("one with currentSchema=NAME, of letters, digits and _") from None
