"""What stands on the wire: one package per protocol, bytes to frames and frames to bytes. Imports only the model."""
