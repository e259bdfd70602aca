"""``python -m tests.simulation.routers --seeds 10000 --from 0``: histories of a router, as many as one likes."""

import argparse
import sys
import time

from tests.simulation.routers.oracle import Broken
from tests.simulation.routers.world import Tale, run_history


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.routers")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    total = Tale()
    failed = 0
    for seed in range(options.first, options.first + options.seeds):
        try:
            total.add(run_history(seed))
        except Broken as failure:
            failed += 1
            sys.stdout.write(f"seed {seed}: {failure}\n")
    seconds = time.monotonic() - began
    sys.stdout.write(f"{options.seeds} histories in {seconds:.1f} s; {failed} failed\n")
    sys.stdout.write(", ".join(f"{name} {value}" for name, value in vars(total).items()) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
