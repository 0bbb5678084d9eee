"""Data sets: their sources, formats, verification and cache."""
