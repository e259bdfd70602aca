"""`python -m benchmarks`: the comparison, then its tables on standard output. Arguments are those of the comparison."""

from __future__ import annotations

import sys

from benchmarks import report, stomp_compare


def main() -> int:
    """Run both; progress goes to standard error."""
    code, path = stomp_compare.run(sys.argv[1:])
    return code if path is None else report.write(path)


if __name__ == "__main__":
    sys.exit(main())
