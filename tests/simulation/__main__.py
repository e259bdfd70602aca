"""``python -m tests.simulation --seeds 1000 --from 0 --jobs 2``: histories of a whole broker, as many as one likes.

A seed that fails is made short and told in words; ``--seed N --keep 3,5-7`` runs that short history again.
"""

import argparse
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.whole.history import Broken, Tale, run_history
from tests.simulation.whole.shrinker import indexes, ranges, shrink

PART = 100
MOST_FAILURES = 10


def say(text: str = "") -> None:
    """One line for the person at the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run_part(first: int, count: int) -> tuple[Tale, list[tuple[int, str]]]:
    """Some seeds: what they went through, and which failed."""
    logging.disable(logging.CRITICAL)
    total = Tale()
    failed: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        try:
            total.add(run_history(seed))
        except Broken as failure:
            failed.append((seed, str(failure)))
        except Exception as error:  # a bug of any kind is a finding, and must not end the run
            failed.append((seed, f"{type(error).__name__}: {error}"))
    return total, failed


def run_many(first: int, count: int, jobs: int) -> int:
    """Runs seeds and tells how it went. Returns how many failed."""
    began = time.monotonic()
    starts = range(first, first + count, PART)
    sizes = [min(PART, first + count - start) for start in starts]
    total = Tale()
    failed: list[tuple[int, str]] = []
    done = 0
    with ProcessPoolExecutor(jobs) as pool:
        for size, (tale, failures) in zip(sizes, pool.map(run_part, starts, sizes), strict=True):
            total.add(tale)
            done += size
            failed += failures
            for seed, words in failures:
                say(f"seed {seed}: {words[:300]}")
            if done % (PART * 50) == 0:
                say(f"{done} histories, {done / (time.monotonic() - began):.0f} a second, {len(failed)} failed")
    seconds = time.monotonic() - began
    say(f"{done} histories in {seconds:.1f} s, {done / seconds:.0f} a second; {len(failed)} failed")
    say(", ".join(f"{name} {value}" for name, value in vars(total).items()))
    for seed, _ in failed[:MOST_FAILURES]:
        tell_shortly(seed)
    return len(failed)


def tell_shortly(seed: int) -> None:
    """Makes a failing seed short and tells it."""
    logging.disable(logging.CRITICAL)
    found = shrink(seed)
    if found is None:
        say(f"seed {seed} does not fail when it runs alone")
        return
    kept, failure = found
    say()
    say(f"seed {seed}, {len(kept)} steps; again with: python -m tests.simulation --seed {seed} --keep {ranges(kept)}")
    tell(failure)


def tell(failure: Broken) -> None:
    """The steps and the end."""
    for number, words in enumerate(failure.told, 1):
        say(f"{number:5}. {words}")
    say(f"       {failure}")


def run_one(seed: int, keep: str) -> int:
    """One history, or some of its steps."""
    logging.disable(logging.CRITICAL)
    try:
        run_history(seed, kept=indexes(keep) if keep else None)
    except Broken as failure:
        tell(failure)
        return 1
    say(f"seed {seed} is clean")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many histories")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, help="one history only")
    parser.add_argument("--keep", default="", help="of it, these steps only: 1,4-6")
    parser.add_argument("--short", action="store_true", help="make that history short first")
    options = parser.parse_args()
    if options.seed is None:
        return 1 if run_many(options.first, options.seeds, options.jobs) else 0
    if options.short:
        tell_shortly(options.seed)
        return 1
    return run_one(options.seed, options.keep)


if __name__ == "__main__":
    sys.exit(main())
