"""Data sets: where they come from, how they are checked, where they are kept."""
