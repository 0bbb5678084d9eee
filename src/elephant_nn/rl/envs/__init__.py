"""The four tasks as pure functions, and what an environment is."""
