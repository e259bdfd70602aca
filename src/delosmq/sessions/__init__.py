"""Sessions: machines between frames and the engine, without sockets and clocks. `outbox` is the output gate."""
