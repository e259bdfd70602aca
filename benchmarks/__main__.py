"""`python -m benchmarks`: the comparisons, then the engine alone and a restart; tables on standard output.

Arguments are those of the comparisons. `python -m benchmarks stomp`, `openwire`, `engine` or `restart` runs one of
them; arguments behind the word are its own. `python -m benchmarks takeover` measures how long clients are without a
broker, `routing` what a connection router costs, `spark` how Spark reads and writes beside Kafka; `count` counts
instructions instead of time, `clients` compares our client with others.
"""

from __future__ import annotations

import sys

from benchmarks import compare, count, engine, report, restart, routing, takeover
from benchmarks.clients import compare as clients
from benchmarks.comparison import COMPARISONS


def _compare(name: str, arguments: list[str]) -> int:
    code, path = compare.run(COMPARISONS[name], arguments)
    return code if path is None else report.write(path)


def main() -> int:
    """Run what is asked for; progress goes to standard error."""
    which, rest = sys.argv[1:2], sys.argv[2:]
    if which == ["clients"]:
        return clients.main(rest)
    if which == ["count"]:
        return count.main(rest)
    if which == ["engine"]:
        return engine.main(rest)
    if which == ["restart"]:
        return restart.main(rest)
    if which == ["routing"]:
        return routing.main(rest)
    if which == ["takeover"]:
        return takeover.main(rest)
    if which == ["spark"]:
        # Needs pyspark and pyarrow, which the others do without.
        from benchmarks.spark import compare as spark

        return spark.main(rest)
    if which and which[0] in COMPARISONS:
        return _compare(which[0], rest)
    return max(*(_compare(name, sys.argv[1:]) for name in COMPARISONS), engine.main([]), restart.main([]))


if __name__ == "__main__":
    sys.exit(main())
