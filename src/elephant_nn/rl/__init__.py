"""Reinforcement learning: environments as pure functions, a ring buffer, DQN."""
