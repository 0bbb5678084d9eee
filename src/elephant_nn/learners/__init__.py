"""One file a method. A learner is `init(key)`, `update(state, batch)`, `predict(state, x)`."""
