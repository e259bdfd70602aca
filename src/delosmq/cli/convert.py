"""``delosmq convert``: the configuration of ActiveMQ Classic as that of DelosMQ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from delosmq.cli.create import tell_of_instance
from delosmq.cli.output import plain_console
from delosmq.cli.usage import WrongCallError
from delosmq.config.properties import read_properties
from delosmq.migration.activemq_xml import check_conversion, convert_activemq_xml, write_instance
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import WebBind

LEFT_OUT: Final = 3
"""Exit code of a conversion that left something out."""


def convert_command(
    source: Path,
    directory: Path | None,
    *,
    properties: Mapping[str, str],
    password: str | None = None,
    http_port: int = 8161,
    file: IO[str] | None = None,
    listing: IO[str] | None = None,
) -> int:
    """Converts ``source`` and lists what could not be converted; gives the exit code.

    Args:
        directory: of the instance to make; None prints the broker.xml and writes nothing.
        properties: what ``${name}`` stands for.
        password: of the administrator; None makes a random one.
        file, listing: instead of standard output and standard error.

    Raises:
        ConfigurationError: the file can't be read or converted, or the directory can't be used; nothing is left behind.
    """
    out = plain_console(file=file)
    told = plain_console(stderr=listing is None, file=listing)
    conversion = convert_activemq_xml(source, properties=properties)
    try:
        check_conversion(conversion)
    except ConfigurationError:
        for line in conversion.lines():
            told.print(line)
        raise
    if directory is None:
        out.print(conversion.broker_xml, end="")
    else:
        web = WebBind(port=http_port)
        created = write_instance(conversion, directory, password=password, web=web)
        messages = "   (none yet: messages of the old broker stay there)"
        tell_of_instance(out, f"Converted {source}", created, messages=messages)
        if conversion.users:
            out.print(f"  other users    {', '.join(conversion.users)}   (with the passwords they had)")
        out.print(f"\nNext: read the top of {created.paths.broker_xml}, then delosmq run {directory}")
    for line in conversion.lines():
        told.print(line)
    if directory is None and conversion.users:
        told.print(f"{source}: users and roles are written with --output only")
    if conversion.is_complete:
        return 0
    count = sum(remark.left_out for remark in conversion.remarks)
    told.print(f"{source}: {count} {'thing was' if count == 1 else 'things were'} left out, the first of those above")
    return LEFT_OUT


def read_definitions(written: Sequence[str], file: Path | None) -> dict[str, str]:
    """What ``--define NAME=VALUE`` options and the file of ``--properties`` say; options win.

    Raises:
        WrongCallError: an option is not of this form.
        ConfigurationError: the file can't be read.
    """
    found: dict[str, str] = {}
    if file is not None:
        entries, findings = read_properties(file)
        findings.raise_if_any()
        found = {entry.key: entry.value for entry in entries}
    for text in written:
        name, equals, value = text.partition("=")
        if not name or not equals:
            # The value may be a password.
            raise WrongCallError("DMQ4142", f"--define {name} is not of the form NAME=VALUE; write it so")
        found[name] = value
    return found
