"""The ridge head, reports of forgetting, and editing, on scikit-learn's digits."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from elephant_nn.files import StorageError  # noqa: E402
from elephant_nn.online_ridge import OnlineRidge  # noqa: E402
from elephant_nn.torch import (  # noqa: E402
    Elephant,
    RidgeHead,
    Watch,
    by_label,
    edit,
    edit_report,
    even_bias_,
    forgetting_report,
)

X, Y = load_digits(return_X_y=True)
X, Y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(Y)
TRAIN, TEST = slice(0, 1200), slice(1200, None)


def network(elephant=True):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 300), Elephant(0.3) if elephant else nn.ReLU(), nn.Linear(300, 10)
    )
    if elephant:
        even_bias_(model[0].bias, 0.7)
    return model


def train(model, x, y, steps=150, lr=1e-2):
    optimiser = torch.optim.Adam(model.parameters(), lr)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model


@pytest.fixture(scope="module")
def trained():
    return train(network(), X[TRAIN], Y[TRAIN])


def head(**settings):
    return RidgeHead(network()[:2], 10, **settings)


def test_importing_it_does_not_import_jax():
    script = (
        "import sys, elephant_nn.torch as e, torch\n"
        "nn = torch.nn\n"
        "model = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 2))\n"
        "model, _ = e.elephantize(model, torch.randn(20, 3))\n"
        "head = e.RidgeHead(model[:2], 2).partial_fit(torch.randn(5, 3), torch.ones(5).long())\n"
        "e.edit(head, torch.randn(3), 0)\n"
        "assert not {m for m in sys.modules if m.partition('.')[0] in ('jax', 'jaxlib')}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_ridge_head_has_the_numbers_of_numpy():
    ours, numpys = head(batch_size=100), OnlineRidge(300, 10)
    for rows in torch.arange(1200).split(170):
        ours.partial_fit(X[rows], Y[rows])
    h = network()[:2](X).detach().double().numpy()
    numpys.add(h[TRAIN], np.eye(10)[Y[TRAIN]])
    expected = numpys.solution().predict(h)
    np.testing.assert_allclose(ours(X).numpy(), expected, atol=1e-6)
    assert (ours.predict(X[TEST]) == Y[TEST]).float().mean() > 0.93
    assert all(p.grad is None for p in ours.parameters())


def test_ridge_head_grows_and_continues_from_a_file(tmp_path):
    ours = RidgeHead(network()[:2], 5).partial_fit(X[TRAIN][Y[TRAIN] < 5], Y[TRAIN][Y[TRAIN] < 5])
    path = ours.save(tmp_path / "head.safetensors")
    loaded = RidgeHead.load(path, network()[:2])
    twin, extra = copy.deepcopy(ours), RidgeHead(network()[:2], 5)
    extra.load_state_dict(ours.state_dict())
    new = Y[TRAIN] >= 5
    for each in (ours, loaded, twin, extra):
        each.grow(10)
        each.partial_fit(X[TRAIN][new], Y[TRAIN][new])
        assert torch.equal(each(X[TEST]), ours(X[TEST]))
    whole = head().partial_fit(X[TRAIN], Y[TRAIN])
    torch.testing.assert_close(whole(X), ours(X), atol=1e-5, rtol=1e-5)
    other = network()
    other[0].weight.data += 1e-3
    with pytest.raises(StorageError, match="another features module"):
        RidgeHead.load(path, other[:2])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StorageError, match="damaged"):
        RidgeHead.load(path, network()[:2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: head()(X), "nothing was learned yet"),
        (lambda: head().partial_fit(X[:2], Y[:3]), "one whole number for each of 2 samples"),
        (lambda: head().partial_fit(X[:2], Y[:2].float()), "one whole number"),
        (lambda: head().partial_fit(X[:2], Y[:2] + 10), "labels must be 0 to 9, got 10 to 11"),
        (lambda: head().partial_fit(X[:2].to("meta"), Y[:2]), "x is on meta and the features are"),
        (lambda: head().partial_fit(X[:2] * torch.nan, Y[:2]), "features of input 0 are NaN"),
        (lambda: head().partial_fit(X[:2].numpy(), Y[:2]), "must be a torch.Tensor, got ndarray"),
        (lambda: RidgeHead(len, 3), "features must be an nn.Module"),
        (lambda: head(ridge=-1.0), "ridge must be above 0"),
    ],
)  # fmt: skip
def test_ridge_head_says_what_is_wrong(call, message):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        call()


def test_ridge_head_learns_from_all_samples_or_none():
    ours = head(batch_size=100)
    x = X[TRAIN].clone()
    x[250] = torch.nan
    with pytest.raises(ValueError, match="features of input 250 are NaN"):
        ours.partial_fit(x, Y[TRAIN])
    assert ours.sums is None
    ours.partial_fit(X[:300], Y[:300])
    with pytest.raises(ValueError, match="a weight of 0 or more"):
        ours.partial_fit(X[:300], Y[:300], torch.arange(299.0, -1, -1) - 1)
    with pytest.raises(ValueError, match="features of input 250 are NaN"):
        ours(x)
    same = head(batch_size=100).partial_fit(X[:300], Y[:300])
    for name, array in same.sums.arrays().items():
        np.testing.assert_array_equal(array, ours.sums.arrays()[name])


def loaders():
    rows = torch.arange(len(X))[TEST]
    make = lambda keep: DataLoader(TensorDataset(X[rows[keep]], Y[rows[keep]]), 50, shuffle=True)
    return make(Y[TEST] < 8), make(Y[TEST] >= 8)


def test_report_of_forgetting(tmp_path):
    old, new = loaders()
    known, fresh = Y[TRAIN] < 8, Y[TRAIN] >= 8
    model = train(network(elephant=False), X[TRAIN][known], Y[TRAIN][known])
    before = copy.deepcopy(model.state_dict())
    watch = Watch(model, by_label(old), new)
    watch.measure(0)
    state = torch.get_rng_state()
    for step in (10, 20, 30):
        train(model, X[TRAIN][fresh], Y[TRAIN][fresh], 10)
        values = watch.measure(step)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    report, watched = forgetting_report(model, old, new, before=before), watch.report()
    right = lambda outputs, keep: float((outputs.argmax(1) == Y[TEST])[keep].double().mean())
    earlier = network(elephant=False)
    earlier.load_state_dict(before)
    keep = Y[TEST] < 8
    first, last = right(earlier(X[TEST]), keep), right(model(X[TEST]), keep)
    assert report.backward_transfer == pytest.approx(last - first)
    assert report.forgetting == pytest.approx(first - last)
    assert report.forgetting > 0.2
    assert report.learned == pytest.approx(right(model(X[TEST]), ~keep))
    assert report.values.shape == (2, 2)
    assert watched.values.shape == (4, 9)
    assert list(values) == ["0", "1", "2", "3", "4", "5", "6", "7", "new"]
    assert watched.forgetting >= -watched.backward_transfer
    assert 0 < report.flipped[-1] <= 1
    assert report.change[0] == 0 < report.change[-1]
    assert "| old: 3 |" in watched.table()
    assert "| old | 0.9" in str(report)
    watched.figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    twin = forgetting_report(model, old, new, before=earlier)
    np.testing.assert_array_equal(twin.values, report.values)


def test_figures_need_matplotlib(monkeypatch):
    model = network()
    watch = Watch(model, [(X, Y)])
    with pytest.raises(RuntimeError, match="there are 0 measurements"):
        watch.report()
    watch.measure()
    watch.measure()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        watch.report().figure()
    with pytest.raises(ValueError, match="has no batches"):
        Watch(model, iter([(X, Y)])).measure()


def misread(model):
    with torch.no_grad():
        wrong = model(X[TEST]).argmax(1) != Y[TEST]
    return X[TEST][wrong], Y[TEST][wrong]


def test_edit_corrects_digits_and_keeps_others(trained):
    x, y = misread(trained)
    before = copy.deepcopy(trained.state_dict())
    once = edit(trained, x[0], int(y[0]))
    several = edit(trained, x[:3], y[:3])
    careful = edit(trained, x[:3], y[:3], keep=X[:100], keep_weight=10.0)
    assert all(torch.equal(before[k], v) for k, v in trained.state_dict().items())
    report = edit_report(trained, once, x[0], int(y[0]), X[TEST], labels=Y[TEST])
    assert (report.error_before, report.error_after) == (1, 0)
    assert report.fraction_flipped < 0.05
    assert abs(report.accuracy_after - report.accuracy_before) < 0.03
    change = lambda model: (model(X[:100]) - trained(X[:100])).norm(dim=1).mean().item()
    assert (several(x[:3]).argmax(1) == y[:3]).all()
    assert (careful(x[:3]).argmax(1) == y[:3]).all()
    assert change(careful) < 0.8 * change(several)


def test_edit_of_numbers():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 200), nn.Tanh(), nn.Linear(200, 2))
    x, y = torch.tensor([[0.3], [-0.4]]), torch.tensor([[1.0, -1.0], [0.5, 0.0]])
    adam = lambda p: torch.optim.Adam(p, 1e-2)
    edited = edit(model, x, y, optimiser=adam, steps=500, tolerance=0.01)
    torch.testing.assert_close(edited(x), y, atol=0.011, rtol=0)
    report = edit_report(model, edited, x, y, torch.linspace(-1, 1, 50)[:, None])
    assert report.error_after < 0.02 < report.error_before
    assert report.fraction_flipped is None
    with pytest.raises(ValueError, match="2 inputs and 1 targets"):
        edit(model, x, y[:1])
    with pytest.raises(ValueError, match="requires a gradient"):
        edit(model.requires_grad_(False), x, y)


def test_edit_of_a_ridge_head_is_a_weighted_solution():
    ours = head().partial_fit(X[TRAIN], Y[TRAIN])
    x, y = misread(ours)
    edited = edit(ours, x[:2], y[:2])
    assert (edited.predict(x[:2]) == y[:2]).all()
    weight = (float(edited.sums.samples) - 1200) / 2
    assert np.log2(weight).is_integer()
    repeated = head().partial_fit(X[TRAIN], Y[TRAIN])
    for _ in range(int(weight)):
        repeated.partial_fit(x[:2], y[:2])
    torch.testing.assert_close(repeated(X), edited(X), atol=1e-5, rtol=1e-4)
    kept = edit(ours, x[0], int(y[0]), keep=X[:50])
    assert torch.equal(kept.predict(X[:50]), ours.predict(X[:50]))
    with pytest.raises(ValueError, match="however much they weigh"):
        edit(ours, x[[0, 0]], torch.tensor([1, 2]))
    for setting in ({"keep_weight": 2.0}, {"steps": 3}, {"tolerance": 0.1}):
        with pytest.raises(ValueError, match="a RidgeHead is solved at once"):
            edit(ours, x[0], int(y[0]), keep=X[:50], **setting)


def test_edit_with_kept_points_loses_no_class(tmp_path):
    known = Y[TRAIN] < 8
    ours = RidgeHead(network()[:2], 8).partial_fit(X[TRAIN][known], Y[TRAIN][known])
    ours.grow(10)
    x, y = misread(ours)
    fours = X[TRAIN][Y[TRAIN] == 4]
    lowest = int(ours(fours)[:, :8].mean(0).argmin())
    keep = fours[ours(fours)[:, lowest].argsort()[:50]]
    point = int(np.flatnonzero(y < 8)[0])
    edited = edit(ours, x[point], int(y[point]), keep=keep, weight=1e4)
    assert edited.sums.targets[lowest] < 0
    loaded = RidgeHead.load(edited.save(tmp_path / "head.safetensors"), network()[:2])
    for each in (edited, loaded):
        scores = each(X[TEST])
        assert scores[:, :8].isfinite().all()
        assert (scores[:, 8:] == -torch.inf).all()
    right = lambda model: (model.predict(X[TEST]) == Y[TEST]).double().mean()
    assert right(edited) > right(ours) - 0.05


def test_report_of_an_edit_to_a_new_class():
    known = Y[TRAIN] < 9
    ours = RidgeHead(network()[:2], 9).partial_fit(X[TRAIN][known], Y[TRAIN][known])
    ours.grow(10)
    nine = X[TEST][Y[TEST] == 9][0]
    edited = edit(ours, nine, 9)
    report = edit_report(ours, edited, nine, 9, X[TEST], labels=Y[TEST])
    assert (report.error_before, report.error_after) == (1, 0)
    change = (edited(X[TEST]) - ours(X[TEST]))[:, :9].norm(dim=1)
    change = change[(X[TEST] - nine).norm(dim=1) > 0.1]
    assert report.mean_change_outside == pytest.approx(float(change.mean()), rel=1e-4)
    assert report.max_change_outside == pytest.approx(float(change.max()), rel=1e-4)


def test_reports_of_double_models_are_double():
    model = nn.Linear(1, 1).double()
    other = copy.deepcopy(model)
    other.bias.data += 1e-10
    x = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    report = edit_report(model, other, x[:1], x[:1], x)
    assert report.mean_change_outside == pytest.approx(1e-10, rel=1e-4)


def test_a_file_needs_the_widths_that_it_was_written_with(tmp_path):
    path = head().partial_fit(X[TRAIN], Y[TRAIN]).save(tmp_path / "head.safetensors")
    wider = network()
    wider[1].set_width(0.4)
    with pytest.raises(StorageError, match="another features module"):
        RidgeHead.load(path, wider[:2])


def test_an_edit_says_what_it_cannot_do(trained):
    with pytest.raises(ValueError, match="between 0 and 9"):
        edit(trained, X[0], 12)
    with pytest.warns(RuntimeWarning, match="not every point has its target after 1 steps"):
        edit(trained, X[0], int(Y[0] + 1) % 10, steps=1)
