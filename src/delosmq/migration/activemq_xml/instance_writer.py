"""Writes a conversion as an instance directory."""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory

from delosmq.config.broker_xml import load_broker_xml
from delosmq.config.instance import CreatedInstance, InstancePaths, clear_instance, create_instance, load_instance
from delosmq.config.instance_files import ROLES_COMMENT, USERS_COMMENT
from delosmq.config.properties import Entry, load_users, replace_file, write_properties
from delosmq.migration.activemq_xml.converter import ConvertedBroker
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import WebBind
from delosmq.security.passwords import SALT_BYTES, hash_password


def check_conversion(conversion: ConvertedBroker) -> None:
    """Loads what would be written.

    Raises:
        ConfigurationError: it is not accepted, as what was converted contradicts itself.
    """
    with TemporaryDirectory(prefix="delosmq-convert-") as directory:
        path = Path(directory) / "broker.xml"
        path.write_text(conversion.broker_xml, encoding="utf-8")
        try:
            load_broker_xml(path, properties={})
        except ConfigurationError as mistake:
            sentence = str(mistake).replace(str(path), path.name)
            raise ConfigurationError(
                "DMQ4141",
                f"what {conversion.file} says can't be taken as it is; change it there and convert again. Lines "
                f"are those of the broker.xml that it would become: {sentence}",
            ) from mistake


def write_instance(
    conversion: ConvertedBroker, directory: Path, *, password: str | None = None, web: WebBind | None = None
) -> CreatedInstance:
    """Makes an instance directory of what was converted.

    Takes tens of milliseconds for each user, to hash the password.

    Args:
        password: of the administrator; None makes a random one.

    Raises:
        ConfigurationError: as `check_conversion` and `create_instance`; the directory is left as it was.
    """
    check_conversion(conversion)
    existed = directory.exists()
    created = create_instance(directory, user=conversion.administrator, password=password, web=web)
    try:
        _fill(conversion, created.paths)
        load_instance(created.paths.root, properties={})
    except BaseException as failure:
        clear_instance(created.paths, existed)
        if isinstance(failure, OSError):
            message = f"{directory} can't be written: {failure.strerror}; choose another directory or make room"
            raise ConfigurationError("DMQ4143", message) from failure
        raise
    return created


def _fill(conversion: ConvertedBroker, paths: InstancePaths) -> None:
    users = [Entry(user, stored) for user, stored in load_users(paths.users).items()]
    users += [
        Entry(user, hash_password(plain, secrets.token_bytes(SALT_BYTES))) for user, plain in conversion.users.items()
    ]
    roles = [Entry(role, ",".join(names)) for role, names in conversion.roles.items() if names]
    write_properties(paths.users, users, USERS_COMMENT)
    write_properties(paths.roles, roles, ROLES_COMMENT)
    replace_file(paths.broker_xml, conversion.broker_xml.encode())
