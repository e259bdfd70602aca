"""The calls of a sink that writes exactly once: stage, publish, discard."""
