"""``<database-store>``: what it says, and what is wrong with it, with its line."""

import pytest

from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import BackupPolicy, DatabaseStoreSettings
from tests.config.conftest import Load

URL = "jdbc:postgresql://db:5433/messages"


def store(*lines: str) -> str:
    return "\n".join(["<store><database-store>", *lines, "</database-store></store>"])


def url(text: str) -> str:
    return f"<jdbc-connection-url>{text}</jdbc-connection-url>"


def read(load: Load, text: str) -> DatabaseStoreSettings:
    database = load(store(url(text))).settings.database
    assert database is not None
    return database


def test_defaults_take_over_in_less_than_two_seconds(load: Load) -> None:  # HA-2
    database = read(load, URL)
    assert dict(database.options) == {"host": "db", "port": "5433", "dbname": "messages"}
    assert (database.lock_expiration_ms, database.lock_renew_period_ms) == (1_200, 300)
    assert database.network_timeout_ms == 20_000
    assert (database.user, database.password) == ("", "")
    names = (database.instance_table, database.bindings_table, database.messages_table, database.bodies_table)
    assert names == ("NODE_MANAGER_STORE", "BINDINGS", "MESSAGES", "LARGE_MESSAGES")


def test_everything_can_be_said_as_artemis_has_it(load: Load) -> None:
    loaded = load(
        store(
            "<jdbc-driver-class-name>org.postgresql.Driver</jdbc-driver-class-name>",
            url(URL),
            "<jdbc-user>broker</jdbc-user>",
            "<jdbc-password>${DB_PASSWORD}</jdbc-password>",
            "<bindings-table-name>a_bindings</bindings-table-name>",
            "<message-table-name>a_messages</message-table-name>",
            "<large-message-table-name>a_bodies</large-message-table-name>",
            "<page-store-table-name>a_pages</page-store-table-name>",
            "<node-manager-store-table-name>a_nodes</node-manager-store-table-name>",
            "<jdbc-network-timeout>5000</jdbc-network-timeout>",
            "<jdbc-lock-renew-period>4000</jdbc-lock-renew-period>",
            "<jdbc-lock-expiration>20000</jdbc-lock-expiration>",
            "<jdbc-lock-acquisition-timeout>60000</jdbc-lock-acquisition-timeout>",
            "<jdbc-journal-sync-period>5</jdbc-journal-sync-period>",
        ),
        DB_PASSWORD="quite secret",
    )
    database = loaded.settings.database
    assert database is not None
    assert (database.user, database.password) == ("broker", "quite secret")
    assert database.messages_table == "a_messages"
    assert (database.lock_expiration_ms, database.lock_renew_period_ms) == (20_000, 4_000)
    assert "quite secret" not in repr(loaded.settings)
    said = " ".join(loaded.notices)
    for name in ("page-store-table-name", "jdbc-lock-acquisition-timeout", "jdbc-journal-sync-period"):
        assert name in said


def test_a_journal_can_be_said_and_memory_needs_no_database(load: Load) -> None:
    assert load("<store><file-store/></store>").settings.database is None
    off = "<persistence-enabled>false</persistence-enabled>"
    assert load(off + store(url(URL))).settings.database is None


def test_a_pair_shares_the_tables_and_needs_no_journal_directory(load: Load) -> None:  # HA-2
    settings = load(store(url(URL)) + "<ha-policy><shared-store><backup/></shared-store></ha-policy>").settings
    assert isinstance(settings.ha_policy, BackupPolicy)
    assert settings.database is not None


def test_what_a_commit_takes_is_bounded(load: Load) -> None:
    size = "<journal-file-size>3G</journal-file-size>"
    assert load(size + store(url(URL))).settings.journal.file_size_bytes == 256 * 1024 * 1024
    assert load(size).settings.journal.file_size_bytes == 3 * 1024**3


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("jdbc:postgresql:messages", {"host": "localhost", "port": "5432", "dbname": "messages"}),
        ("jdbc:postgresql:///messages", {"host": "localhost", "port": "5432", "dbname": "messages"}),
        (
            "jdbc:postgresql://a,b:5433/m?targetServerType=primary",
            {"host": "a,b", "port": "5432,5433", "dbname": "m", "target_session_attrs": "read-write"},
        ),
        (
            "jdbc:postgresql://[::1]:5432/m?ssl=true&amp;sslrootcert=/etc/ca.pem",
            {"host": "::1", "port": "5432", "dbname": "m", "sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"},
        ),
        (
            "jdbc:postgresql://a/m?currentSchema=broker,public&amp;ApplicationName=x",
            {"host": "a", "port": "5432", "dbname": "m", "options": "-c search_path=broker,public"},
        ),
    ],
)
def test_urls_are_those_of_pgjdbc(load: Load, text: str, options: dict[str, str]) -> None:
    assert dict(read(load, text).options) == options


MISTAKES = [
    ("<store/>", 3, "<store> is empty; write <database-store> or <file-store/>"),
    (
        f"<store><file-store/>\n<database-store>{url(URL)}</database-store></store>",
        4,
        "<database-store> beside <file-store> in line 3",
    ),
    (store("<jdbc-user>a</jdbc-user>"), 3, "lacks <jdbc-connection-url>; write <jdbc-connection-url>jdbc:postgresql:"),
    (store(url("jdbc:derby:target/x;create=true")), 4, "PostgreSQL is the only database"),
    (store(url("jdbc:oracle:thin:@db:1521:x")), 4, "PostgreSQL is the only database"),
    (store(url("jdbc:postgresql://db")), 4, "with the name of a database after the host"),
    (store(url("jdbc:postgresql://db:99999/m")), 4, "with hosts and ports such as db1:5432,db2:5432"),
    (store(url("jdbc:postgresql://me:pw@db/m")), 4, "without a user in it; write <jdbc-user> and <jdbc-password>"),
    (store(url("jdbc:postgresql://db/m?password=hidden")), 4, "one without password=; write <jdbc-password> beside"),
    (store(url("jdbc:postgresql://db/m?currentShema=x")), 4, "did you mean 'currentSchema'?"),
    (store(url("jdbc:postgresql://db/m?currentSchema=x;DROP")), 4, "currentSchema=NAME, of letters, digits and _"),
    (store(url("jdbc:postgresql://db/m?targetServerType=secondary")), 4, "a standby takes no messages"),
    (store(url("jdbc:postgresql://db/m?ssl=perhaps")), 4, "ssl=true or ssl=false"),
    (
        store("<jdbc-driver-class-name>org.apache.derby.jdbc.EmbeddedDriver</jdbc-driver-class-name>", url(URL)),
        4,
        "must be org.postgresql.Driver: PostgreSQL is the only database",
    ),
    (store(url(URL), "<message-table-name>a b</message-table-name>"), 5, "the name of a table, of up to 63 letters"),
    (
        store(url(URL), "<message-table-name>same</message-table-name><bindings-table-name>SAME</bindings-table-name>"),
        3,
        "two tables of <database-store> are called 'same'",
    ),
    (store(url(URL), "<jdbc-lock-expiration>100</jdbc-lock-expiration>"), 5, "at least 300"),
    (
        store(url(URL), "<jdbc-lock-renew-period>900</jdbc-lock-renew-period>"),
        5,
        "jdbc-lock-renew-period is 900 and jdbc-lock-expiration 1200: a lease must outlast two renewals",
    ),
    (store(url(URL), "<jdbc-password>ENC(5eCrEt)</jdbc-password>"), 5, "is masked by ENC(...)"),
    (store(url(URL), "<data-source-class-name>a.B</data-source-class-name>"), 5, "Java classes can't run here"),
    (store(url(URL), "<jdbc-usr>a</jdbc-usr>"), 5, "did you mean 'jdbc-user'?"),
]


@pytest.mark.parametrize(("core", "line", "sentence"), MISTAKES)
def test_each_mistake_is_told_with_its_line(load: Load, core: str, line: int, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(core)
    said = str(raised.value)
    assert f"broker.xml:{line}: " in said
    assert sentence in said
    assert not any(secret in said for secret in ("hidden", "5eCrEt", "me:pw"))
