"""STOMP 1.0, 1.1 and 1.2 as bytes: frames and their heads, decoder, encoder.

Source: the STOMP specifications 1.0, 1.1 and 1.2 (stomp.github.io). What they leave open, or what brokers commonly
do instead, is decided in the docstrings of ``decoder``, ``heads`` and ``encoder``.
"""
