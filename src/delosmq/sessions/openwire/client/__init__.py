"""A client of an OpenWire broker, as the Java client is one, without sockets, threads or clocks of its own."""
