"""Load over OpenWire: the real Java client, driven by programs of ours."""
