import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import edit, edit_report, emlp, mlp
from elephant_nn.editing import EditReport, report_change

KEY = jax.random.key(0)
X, Y = jnp.array([1.5]), jnp.array([-1.5])
EVERYWHERE = jnp.linspace(0, 2, 200)[:, None]


def edited(network, steps):
    before = network.init(KEY)
    after = edit(network, before, X, Y, steps=steps)
    return edit_report(network, before, after, X, Y, EVERYWHERE, neighbourhood=0.25)


def test_edits_of_elephants_are_more_local_than_of_relu():
    elephant = edited(emlp((1, 1000, 1), a=0.04, sigma_bias=0.64, d=8), 50)
    relu = edited(mlp((1, 1000, 1)), 10)
    assert elephant.error_after < 0.05 * elephant.error_before
    assert relu.error_after < 0.05 * relu.error_before
    assert elephant.mean_change_outside < 0.2 * relu.mean_change_outside
    assert elephant.fraction_moved < relu.fraction_moved


def test_report_of_a_worked_example():
    network = mlp((1, 1, 1), lambda x: x)
    line = lambda slope: ({"w": jnp.array([[slope]]), "b": jnp.zeros(1)}, {"w": jnp.ones((1, 1))})
    points = jnp.array([[0.0], [1.0], [2.0], [3.0]])
    report = edit_report(
        network,
        line(1.0),
        line(2.0),
        jnp.array([1.0]),
        jnp.array([4.0]),
        points,
        neighbourhood=0.5,
        moved=2.5,
    )
    assert report.error_before == pytest.approx(3)
    assert report.error_after == pytest.approx(2)
    assert report.mean_change_outside == pytest.approx(5 / 3)
    assert report.max_change_outside == pytest.approx(3)
    assert report.fraction_moved == pytest.approx(1 / 3)


def test_edit_takes_any_optimiser():
    network = emlp((1, 50, 1), a=0.3, sigma_bias=0.5)
    before = network.init(KEY)
    after = edit(network, before, X, Y, steps=100, optimiser=optax.adam(1e-2))
    np.testing.assert_allclose(network.apply(after, X[None])[0], Y, atol=0.05)


def test_report_needs_rows_outside_the_neighbourhood():
    network = mlp((1, 2, 1))
    params = network.init(KEY)
    with pytest.raises(ValueError, match="no row of elsewhere"):
        edit_report(network, params, params, X, Y, X[None])


def test_report_from_outputs():
    old = np.zeros((4, 2))
    new = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, 0.8], [9.0, 9.0]])
    outside = np.array([True, True, True, False])
    report = report_change(old, new, outside, (2.0, 0.5), moved=0.9)
    assert report == EditReport(2.0, 0.5, 2.0, 5.0, 2 / 3)
    assert report_change(old, new, outside, (2.0, 0.5), moved=1.5).fraction_moved == 1 / 3
