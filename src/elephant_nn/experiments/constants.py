"""Numbers that problems and figures share. Free of JAX."""

SINE_STAGES = (100, 150, 200)
"""Samples seen at the three stages of the paper's figure."""

EDIT_POINT, EDIT_TARGET, EDIT_NEIGHBOURHOOD = 1.5, -1.5, 0.25

STEPS = {"mountain-car": 50_000, "acrobot": 30_000, "catcher": 500_000, "pixelcopter": 1_000_000}
"""Environment steps of a run."""
