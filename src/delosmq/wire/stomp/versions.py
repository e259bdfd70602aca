"""The versions of STOMP, as numbers that compare."""

from typing import Final

V10: Final = 10
V11: Final = 11
V12: Final = 12


def version_name(version: int) -> str:
    return f"{version // 10}.{version % 10}"
