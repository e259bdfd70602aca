"""Managing a broker: each operation once in ``control``, and views of it, such as ``http``."""
