"""The four tasks as pure functions."""
