"""`python -m benchmarks`: the comparison, then the engine alone; tables on standard output.

Arguments are those of the comparison. `python -m benchmarks stomp` and `python -m benchmarks engine` run one of them;
arguments behind the word are those of `benchmarks.stomp_compare` or `benchmarks.engine`.
"""

from __future__ import annotations

import sys

from benchmarks import engine, report, stomp_compare


def _compare(arguments: list[str]) -> int:
    code, path = stomp_compare.run(arguments)
    return code if path is None else report.write(path)


def main() -> int:
    """Run what is asked for; progress goes to standard error."""
    which, rest = sys.argv[1:2], sys.argv[2:]
    if which == ["engine"]:
        return engine.main(rest)
    if which == ["stomp"]:
        return _compare(rest)
    return max(_compare(sys.argv[1:]), engine.main([]))


if __name__ == "__main__":
    sys.exit(main())
