"""Placeholders in configuration files, ``${name}`` and ``${name:default}``, with the names of Artemis's start script.

Source: Artemis, XMLUtil.replaceSystemPropsInString, bin/artemis and etc/artemis.profile.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_OPEN: Final = "${"
_CLOSE: Final = "}"
_MOST_NESTED: Final = 20

# What etc/artemis.profile of Artemis gives to every broker.
_OF_THE_PROFILE: Final = {
    "hawtio.disableProxy": "true",
    "hawtio.offline": "true",
    "hawtio.realm": "activemq",
    "hawtio.rolePrincipalClasses": "org.apache.activemq.artemis.spi.core.security.jaas.RolePrincipal",
}


def known_properties(instance: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What ``${name}`` stands for in the files of an instance directory.

    Args:
        instance: the directory, absolute.
        given: of the environment and the command line. They win, but for the names of the directory itself.
    """
    etc = instance / "etc"
    return {
        **_OF_THE_PROFILE,
        "artemis.home": given.get("ARTEMIS_HOME", str(instance)),
        "data.dir": str(instance / "data"),
        "java.io.tmpdir": str(instance / "tmp"),
        "java.security.auth.login.config": str(etc / "login.config"),
        "file.separator": os.sep,
        "path.separator": os.pathsep,
        "user.dir": str(Path.cwd()),
        "user.home": str(Path("~").expanduser()),
        **given,
        "artemis.instance": str(instance),
        "artemis.instance.etc": str(etc),
        "artemis.instance.etc.uri": etc.as_uri(),
        "delosmq.instance": str(instance),
    }


def replace_placeholders(text: str, properties: Mapping[str, str], note_unknown: Callable[[str], None]) -> str:
    """``text`` with each placeholder replaced; a default may hold further ones, a value may not.

    Args:
        note_unknown: is told the name of each that stands for nothing and has no default; it is left as it is.
    """
    parts: list[str] = []
    place = 0
    while (start := text.find(_OPEN, place)) >= 0 and (end := _end_of(text, start)) > 0:
        parts.append(text[place:start])
        name, colon, default = text[start + len(_OPEN) : end].partition(":")
        name = name.strip()
        value = properties.get(name)
        if value is None and colon:
            value = replace_placeholders(default.strip(), properties, note_unknown)
        if value is None:
            note_unknown(name)
            value = text[start : end + 1]
        parts.append(value)
        place = end + 1
    return "".join([*parts, text[place:]])


def _end_of(text: str, start: int) -> int:
    """Where the placeholder that begins at ``start`` is closed; -1 when it isn't, or holds too many others."""
    depth = 0
    place = start
    while True:
        close = text.find(_CLOSE, place)
        if close < 0:
            return -1
        inner = text.find(_OPEN, place, close)
        if inner >= 0:
            depth += 1
            if depth > _MOST_NESTED:
                return -1
            place = inner + len(_OPEN)
        elif depth == 1:
            return close
        else:
            depth -= 1
            place = close + 1
