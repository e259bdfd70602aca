"""How much Hypothesis tries: what a test asks for, times ``DELOSMQ_EXAMPLES``, which may be a fraction."""

import os
from typing import Final

TIMES: Final = float(os.environ.get("DELOSMQ_EXAMPLES", "1"))


def tries(examples: int) -> int:
    """The number for ``max_examples``."""
    return max(1, round(examples * TIMES))
