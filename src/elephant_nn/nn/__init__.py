"""Activations, initialisers and networks: pure functions on arrays and pytrees."""
