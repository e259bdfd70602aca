"""``python -m examples.orders``."""

import sys

from examples.orders.main import main

sys.exit(main())
