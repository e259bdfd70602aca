"""Properties that a copy of a message carries, saying where it comes from. Source: Artemis Message."""

from typing import Final

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_MESSAGE_ID: Final = "_AMQ_ORIG_MESSAGE_ID"
