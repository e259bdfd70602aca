"""How much Hypothesis tries: what a test asks for, times ``DELOSMQ_EXAMPLES``."""

import os
from typing import Final

TIMES: Final = int(os.environ.get("DELOSMQ_EXAMPLES", "1"))


def tries(examples: int) -> int:
    """The number for ``max_examples``."""
    return examples * TIMES
