import copy
import io
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import elephant_nn  # noqa: E402
from elephant_nn.torch import Elephant, elephant, even_bias_, fan_in_uniform_  # noqa: E402

DTYPES = ("float16", "bfloat16", "float32", "float64")
TINY = 2.0**-130  # a denormal number in float32 and bfloat16


def points(dtype):
    name = "float32" if dtype == "bfloat16" else dtype
    grid = np.concatenate(
        [np.linspace(-3, 3, 41), np.logspace(-4, 4.5, 18), -np.logspace(-4, 4, 9)]
    )
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, TINY, -TINY, 1e20, -1e30, 3e38, 1e-30, 0.1, -0.1]
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([grid, special]).astype(name)


def ours(x, a, d):
    """Value, slope and second derivative."""
    y = elephant(x, a, d)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    return y, slope, second


def theirs(x, a, d):
    f = lambda v: elephant_nn.elephant(v, a, d)
    first = jax.vmap(jax.grad(f))
    return f(x), first(x), jax.vmap(jax.grad(jax.grad(f)))(x)


@pytest.mark.parametrize("d", [1.5, 2, 3, 4, 4.5, 8, 37])
@pytest.mark.parametrize("a", [0.1, 2.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_the_jax_function(dtype, a, d):
    with jax.enable_x64(dtype == "float64"):
        x = points(dtype)
        expected = theirs(jnp.asarray(x, dtype), a, d)
        expected = [np.asarray(array, np.float64) for array in expected]
    found = ours(torch.tensor(x).to(getattr(torch, dtype)).requires_grad_(), a, d)
    eps = torch.finfo(getattr(torch, dtype)).eps
    for order, (mine, other) in enumerate(zip(found, expected, strict=True)):
        assert mine.dtype == getattr(torch, dtype)
        mine = mine.detach().double().numpy()
        if d < 2 and order == 2:  # infinite at 0: XLA takes denormals for 0
            keep = np.abs(x) > 1e-20
            mine, other = mine[keep], other[keep]
        largest = np.abs(np.nan_to_num(other, posinf=0, neginf=0)).max()
        np.testing.assert_allclose(mine, other, rtol=8 * (d + 4) * eps, atol=largest * eps)


@pytest.mark.parametrize("d", [2, 4, 5, 2.5])
def test_no_nan_where_the_formula_has_one(d):
    x = torch.tensor([math.inf, -math.inf, 1e25, 0.0, 3e38]).requires_grad_()
    assert all(torch.isfinite(array).all() for array in ours(x, 0.1, d))
    naive = 1 / (1 + (x / 0.1).abs() ** d)
    assert torch.autograd.grad(naive.sum(), x)[0].isnan().any()


def test_rectangle():
    x = torch.tensor([-3.0, -0.5, 0.0, 0.5, math.nan, math.inf]).requires_grad_()
    y = elephant(x, 0.5, math.inf)
    expected = [0.0, 0.5, 1.0, 0.5, math.nan, 0.0]
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    y[:4].sum().backward()
    assert not x.grad[:4].any()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("d", [2, 3, 4, 4.5])
def test_gradients_of_width_and_input_to_second_order(d):
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    for shape in ((), (4,), (3, 1)):
        a = torch.full(shape, 0.4, dtype=torch.float64, requires_grad=True)
        f = lambda x, a: elephant(x, a, d)
        assert torch.autograd.gradcheck(f, (x, a), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(f, (x, a), check_fwd_over_rev=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_func_transforms():
    from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

    f = lambda x, a: elephant(x, a, 4)
    x, a = torch.linspace(-1, 1, 7, dtype=torch.float64), torch.full((7,), 0.3, dtype=torch.float64)
    with jax.enable_x64(True):
        g = lambda x: elephant_nn.elephant(x, 0.3, 4)
        values = jnp.asarray(x.numpy())
        slope = np.asarray(jax.vmap(jax.grad(g))(values))
        second = np.asarray(jax.vmap(jax.grad(jax.grad(g)))(values))
    close = lambda found, expected: np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
    close(vmap(f)(x, a), f(x, a))
    close(vmap(f, (0, None))(x, a[:1])[:, 0], f(x, a))
    close(vmap(f, (None, 0))(x[:1], a)[:, 0], f(x[:1], a))
    close(vmap(grad(f), (0, 0))(x, a), slope)
    close(vmap(grad(grad(f)), (0, 0))(x, a), second)
    close(jvp(lambda v: f(v, 0.3), (x,), (torch.ones_like(x),))[1], slope)
    close(jacfwd(lambda v: f(v, 0.3))(x).diagonal(), slope)
    close(jacrev(lambda v: f(v, 0.3))(x).diagonal(), slope)
    close(vmap(hessian(lambda v: f(v, 0.3)))(x), second)
    close(vmap(grad(f, 1))(x, a), jacfwd(f, 1)(x, a).diagonal())


def network(**settings):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 16), Elephant(0.5, **settings), nn.Linear(16, 2))


def gradients(model, x):
    model(x).square().sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"learnable": True, "units": 16}])
def test_compiles_as_a_whole(settings):
    model, x = network(**settings), torch.randn(5, 3)
    compiled = torch.compile(model, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found, expected in zip(gradients(compiled, x), gradients(model, x), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{}, {"learnable": True}])
def test_traces_for_compilation_and_export(settings):
    model, x = network(**settings), torch.randn(5, 3)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for found, expected in zip(gradients(compiled, x), gradients(model, x), strict=True):
        torch.testing.assert_close(found, expected)
    exported = torch.export.export(model, (x,))
    torch.testing.assert_close(exported.module()(x), model(x))


def test_autocast_computes_in_full_precision():
    model, x = network(), torch.randn(64, 3)
    with torch.autocast("cpu", torch.bfloat16):
        h = model[0](x)
        y = model[1](h)
        loss = model(x).float().square().mean()
    assert h.dtype == y.dtype == torch.bfloat16
    torch.testing.assert_close(y, elephant(h.float(), 0.5).bfloat16())
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_copies_and_saves():
    model, x = network(learnable=True, units=16), torch.randn(5, 3)
    twin, file = copy.deepcopy(model), io.BytesIO()
    with torch.no_grad():
        model[1].log_a += 1
    torch.save(model.state_dict(), file)
    file.seek(0)
    fresh = network(learnable=True, units=16)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(fresh(x), model(x))
    assert not torch.allclose(twin(x), model(x))
    assert network().state_dict().keys() == nn.Sequential(
        nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2)
    ).state_dict().keys()  # fmt: skip


def test_learnable_widths():
    x = torch.randn(6, 4, 3, 3)
    module = Elephant(0.3, learnable=True, units=4, dim=1)
    torch.testing.assert_close(module(x), elephant(x, 0.3))
    module(x).sum().backward()
    assert module.log_a.grad.shape == (4,)
    assert all(module.log_a.grad != 0)
    assert repr(module) == "Elephant(a=0.3, d=4, learnable=True, units=4)"
    assert repr(Elephant()) == "Elephant(a=0.1, d=4)"


def test_initialisers_are_those_of_jax():
    biases = even_bias_(torch.empty(7), 0.64)
    np.testing.assert_allclose(biases, elephant_nn.even_bias(0.64)(None, (7,)), 1e-6, 1e-9)
    weights = fan_in_uniform_(torch.empty(200, 8, 3, 3), torch.Generator().manual_seed(0))
    bound = 1 / math.sqrt(72)
    assert 0.99 * bound < weights.abs().max() <= bound
    assert float(weights.std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: elephant(torch.zeros(2), 0.0), "finite and above 0"),
        (lambda: elephant(torch.zeros(2), math.nan), "finite and above 0"),
        (lambda: elephant(torch.zeros(2), 0.1, 1), "must be above 1"),
        (lambda: elephant(torch.zeros(2, dtype=torch.complex64)), "must be real"),
        (lambda: elephant(np.zeros(2)), "must be a torch.Tensor, got numpy.ndarray"),
        (
            lambda: elephant(torch.zeros(2, device="meta"), torch.ones(2)),
            "x is on meta and a on cpu",
        ),
        (lambda: Elephant(-1.0), "finite and above 0"),
        (lambda: Elephant(units=3), "units is for learnable=True"),
        (lambda: Elephant(d=math.inf, learnable=True), "choose a finite d"),
        (
            lambda: Elephant(learnable=True, units=3)(torch.zeros(2, 4)),
            r"made for 3 units in dimension -1, got inputs of shape \(2, 4\)",
        ),
        (lambda: fan_in_uniform_(torch.zeros(3)), "two or more dimensions"),
        (lambda: even_bias_(torch.zeros(3), math.inf), "must be finite"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.filterwarnings("ignore")
def test_refuses_quantised_tensors():
    x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"x is quantised; pass x.dequantize\(\)"):
        elephant(x)
