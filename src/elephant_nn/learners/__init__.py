"""Learners: `init(key, x)`, `update(state, batch)`, `predict(state, x)`. One module per method."""
