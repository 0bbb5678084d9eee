import pytest

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED

SINE = EXPERIMENTS["sine"]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_specs_are_whole(experiment):
    axes = ("neurons", "buffer", "task")
    names = [(e.title, *(e.settings.get(axis) for axis in axes)) for e in experiment.entries]
    assert len(set(names)) == len(names)
    metrics = {metric.name for metric in experiment.metrics}
    for entry in experiment.entries:
        assert set(entry.paper) <= metrics
        for settings in (entry.settings, *entry.rivals):
            assert set(settings) == set(entry.settings)
        if entry.grid:
            assert entry.settings in entry.candidates()
            assert all(rival in entry.candidates() for rival in entry.rivals)


def test_the_sine_grid_is_the_papers():
    sizes = {entry.method: len(entry.candidates()) for entry in SINE.entries}
    assert sizes["emlp"] == 150
    assert sum(size for method, size in sizes.items() if method.startswith("mlp-")) == 24
    assert sizes["sr-nn"] == 4 * 6 * 3 * 3
    assert len(SINE.search(SINE.entries, 5)) == 1950


def test_choosing_and_reporting_never_share_a_seed():
    chosen_on = {cell.seed for cell in SINE.search(SINE.entries, 20)}
    reported = {cell.seed for cell in SINE.reproduction(SINE.entries, 999)}
    assert not chosen_on & reported
    assert min(chosen_on) == SELECTION_SEED


def test_every_variant_of_sr_nn_is_reproduced():
    (entry,) = (entry for entry in SINE.entries if entry.method == "sr-nn")
    cells = SINE.reproduction([entry], 2)
    tabled = [cell for cell in cells if "stages" not in cell.hyper]
    assert {cell.hyper["activation"] for cell in tabled} == {"relu", "sigmoid", "tanh", "elu"}
    assert len(tabled) == 8
    assert len(cells) == 9
