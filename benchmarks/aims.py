"""What DelosMQ wants to reach, as ratios to the better of the peers in the same run, or as plain figures."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cells import CELLS
from benchmarks.openwire.cells import CELLS as OPENWIRE_CELLS


@dataclass(frozen=True)
class Aim:
    """`cell` None: a figure of the whole broker. `plain`: in the figure's own unit; else a ratio to the better peer."""

    name: str
    broker: str
    cell: str | None
    figure: str
    limit: float
    part: str | None = None
    at_least: bool = False
    plain: bool = False
    unit: str = " x"


# Compiled: CPU per message against the better peer.
_PERSISTENT_CPU = 0.2
_NON_PERSISTENT_CPU = 0.5
_CONFIRMED_RATE = 3.0
_START_S = 0.3
_IDLE_MIB = 70.0
# The same over OpenWire, against ActiveMQ Classic.
_OPENWIRE_PERSISTENT_CPU = 0.2
_OPENWIRE_NON_PERSISTENT_CPU = 0.7
_OPENWIRE_START = 0.33


def _cell_aims() -> list[Aim]:
    aims = []
    for cell in CELLS:
        cpu = _PERSISTENT_CPU if cell.persistent else _NON_PERSISTENT_CPU
        aims.append(Aim(f"CPU, {cell.name}", "delosmq-compiled", cell.name, "broker_cpu_s_per_million", cpu))
        aims.append(Aim(f"CPU, {cell.name}", "delosmq-pure", cell.name, "broker_cpu_s_per_million", 1.0))
        if cell.outstanding == 100:
            name = f"confirmed rate, {cell.name}"
            aims.append(Aim(name, "delosmq-compiled", cell.name, "confirmed_per_s", _CONFIRMED_RATE, at_least=True))
        for figure in ("delivery", "receipt"):
            if figure == "delivery" or cell.persistent:
                name = f"p99.9 to {figure}, {cell.name}"
                aims.append(Aim(name, "delosmq-compiled", cell.name, figure, 1.0, part="p999_ms"))
    return aims


def _overall_aims() -> list[Aim]:
    aims = []
    for broker in ("delosmq-compiled", "delosmq-pure"):
        aims.append(Aim("start to first confirmed", broker, None, "start_fresh_s", _START_S, plain=True, unit=" s"))
        aims.append(Aim("memory idle", broker, None, "memory_idle_mib", _IDLE_MIB, plain=True, unit=" MiB"))
    return aims


def _openwire_aims() -> list[Aim]:
    broker = "delosmq-compiled"
    aims = []
    for cell in OPENWIRE_CELLS:
        cpu = _OPENWIRE_PERSISTENT_CPU if cell.persistent else _OPENWIRE_NON_PERSISTENT_CPU
        aims.append(Aim(f"CPU, {cell.name}", broker, cell.name, "broker_cpu_s_per_million", cpu))
        for figure in ("delivery", "receipt"):
            if figure == "delivery" or cell.persistent:
                aims.append(Aim(f"p99.9 to {figure}, {cell.name}", broker, cell.name, figure, 1.0, part="p999_ms"))
    return [*aims, Aim("start to first confirmed", broker, None, "start_fresh_s", _OPENWIRE_START)]


STOMP_AIMS = tuple(sorted((*_cell_aims(), *_overall_aims()), key=lambda aim: aim.broker))
OPENWIRE_AIMS = tuple(_openwire_aims())
