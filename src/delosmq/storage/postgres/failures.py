"""What PostgreSQL's errors mean to a store: which pass, which end it, and how that is said."""

from typing import Final

from delosmq.model.errors import ConfigurationError, StorageError
from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.postgres.connection import DatabaseError

DISK_FULL: Final = "53100"
READ_ONLY: Final = "25006"
NO_SCHEMA: Final = "3F000"
LOST: Final = ""

# Classes of SQLSTATE: lost connections, want of resources, read-only servers, conflicts, locks, shutdowns, IO.
_PASSING: Final = ("08", "53", "25", "40", "55", "57", "58")
_LOGIN: Final = ("28", "3D")


def passes(error: DatabaseError) -> bool:
    """Whether the same may work a moment later."""
    return error.state == LOST or error.state[:2] in _PASSING


def where(settings: DatabaseStoreSettings) -> str:
    """The database, for sentences."""
    return f"the database at {settings.url.partition('?')[0]}"


def start_failure(error: DatabaseError, settings: DatabaseStoreSettings) -> StorageError | ConfigurationError:
    """Why a store can't be opened."""
    place = where(settings)
    if error.state[:2] in _LOGIN:
        return ConfigurationError(
            "DMQ3065",
            f"{place} refuses the login of '{settings.user}' ({error.sentence}); correct jdbc-user, jdbc-password or "
            "the name of the database in jdbc-connection-url",
        )
    if error.state == READ_ONLY:
        return StorageError(
            "DMQ3066",
            f"{place} takes reads only, as a standby does; name the primary in jdbc-connection-url, or all of them "
            "with ?targetServerType=primary",
        )
    if passes(error):
        return StorageError(
            "DMQ3067", f"{place} can't be reached ({error.sentence}); see that it runs, then start the broker again"
        )
    if error.state == NO_SCHEMA:
        named = dict(settings.options).get("options", "").partition("search_path=")[2]
        schema = f"schema '{named}'" if named else "schema 'public'"
        return StorageError(
            "DMQ3069",
            f"{place} has no {schema}, or none that '{settings.user}' may use; make it (CREATE SCHEMA name "
            "AUTHORIZATION user), or correct currentSchema in jdbc-connection-url",
        )
    return StorageError(
        "DMQ3069",
        f"{place} can't be used ({error.state}: {error.sentence}); the user needs the right to make and change tables "
        "in the schema of jdbc-connection-url",
    )


def in_use(settings: DatabaseStoreSettings, holder: str) -> ConfigurationError:
    """Another broker has the tables."""
    return ConfigurationError(
        "DMQ3070",
        f"the tables in {where(settings)} are in use by the broker of {holder}, which renews its lease; stop that one "
        "first, or give this one a schema of its own (?currentSchema=... in jdbc-connection-url)",
    )


def fenced(settings: DatabaseStoreSettings) -> StorageError:
    """This broker's lease ended and another one has taken over, or the tables were changed by hand."""
    return StorageError(
        "DMQ3071",
        f"another broker has taken over the tables in {where(settings)}; this one confirms nothing more and stops: "
        "what it had confirmed is with the other, to which clients connect again",
    )


def broken(error: DatabaseError, settings: DatabaseStoreSettings) -> StorageError:
    """An error that does not pass."""
    return StorageError(
        "DMQ3072",
        f"{where(settings)} refuses a commit ({error.state}: {error.sentence}); nothing more is confirmed, the broker "
        "must be restarted once that is mended",
    )
