import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # the test processes share the cores
