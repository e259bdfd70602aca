"""Makes the order events of the main job: JSON lines, the same for the same seed.

python -m examples.data.make_orders --count 20000 --seed 7 > orders.jsonl
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

DEFAULT_COUNT = 20_000
DEFAULT_SEED = 7
CUSTOMERS = 40
FIRST_DAY = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
SPAN = timedelta(hours=36)


def order_lines(count: int, seed: int) -> Iterator[str]:
    """``count`` events in order of time: order_id, customer, placed_at (ISO 8601), amount."""
    chance = random.Random(seed)
    moments = sorted(chance.uniform(0, SPAN.total_seconds()) for _ in range(count))
    for number, seconds in enumerate(moments, start=1):
        placed_at = FIRST_DAY + timedelta(seconds=seconds)
        event = {
            "order_id": f"o-{number:06d}",
            # Squared: a few customers order much, many little, as in life.
            "customer": f"customer-{int(CUSTOMERS * chance.random() ** 2):02d}",
            "placed_at": placed_at.isoformat(timespec="milliseconds"),
            "amount": round(chance.lognormvariate(3.2, 0.8), 2),
        }
        yield json.dumps(event)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write sample order events as JSON lines to standard output.")
    parser.add_argument("--count", type=int, default=DEFAULT_COUNT)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    arguments = parser.parse_args()
    for line in order_lines(arguments.count, arguments.seed):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
