import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from elephant_nn.calibration import calibrate  # noqa: E402
from elephant_nn.torch import Elephant, elephantize  # noqa: E402


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def mlp():
    return nn.Sequential(
        nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 500), nn.ReLU(), nn.Linear(500, 3)
    )


class CNN(nn.Module):
    """Batch normalisation, functional activations and functional dropout, as people write them."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.fc1, self.fc2 = nn.Linear(8 * 9, 100), nn.Linear(100, 4)

    def forward(self, x):
        h = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
        h = functional.dropout(h, 0.3, training=self.training)
        return self.fc2(torch.relu(self.fc1(h.flatten(1))))


class Residual(nn.Module):
    """The last activation follows a sum, as in a ResNet; one module serves twice."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.relu, self.fc = nn.ReLU(inplace=True), nn.Linear(8, 3)

    def forward(self, x):
        h = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(h))
        out += h
        return self.fc(self.relu(out).mean((2, 3)))


class Block(nn.Module):
    """A transformer block."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.up, self.act, self.down = nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.down(self.act(self.up(self.norm2(x))))


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(5, 40), nn.Tanh(), nn.Linear(40, 2)

    def forward(self, x):
        if x.sum() > 0:
            x = -x
        return self.fc2(self.act(self.fc1(x)))


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 64, batch_first=True, dropout=0.0)
    return nn.Sequential(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 3)
    )


def images(n=64):
    return torch.rand(n, 1, 8, 8)


MODELS = {
    "mlp": (mlp, lambda: torch.randn(100, 20), "3", "2", 500),
    "cnn": (CNN, images, "relu_1_elephant", "fc1", 100),
    "residual": (Residual, images, "relu_elephant", "norm2", 8),
    "block": (Block, lambda: torch.randn(20, 7, 16), "act", "up", 64),
    "encoder": (
        encoder, lambda: torch.randn(20, 7, 16), "0.layers.1.activation", "0.layers.1.linear1", 64
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("keep_weights", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_replaces_the_last_hidden_activation(name, keep_weights):
    build, sample, activation, spread, units = MODELS[name]
    model, x = build(), sample()
    before = copy.deepcopy(model.state_dict())
    parameters = {id(p) for p in model.parameters()}
    changed, report = elephantize(model, x, keep_weights=keep_weights)
    (change,) = report.changes
    assert (change.activation, change.biases, change.units) == (activation, spread, units)
    elephants = [m for m in changed.modules() if isinstance(m, Elephant)]
    assert len(elephants) == 1
    assert changed.get_submodule(activation) is elephants[0]
    assert elephants[0].a == change.a
    assert 0.02 < change.active < 0.9
    assert {id(p) for p in changed.parameters()} == parameters
    new = [k for k, v in changed.state_dict().items() if not torch.equal(v, before[k])]
    layer = change.layer
    assert (f"{layer}.weight" in new) is (not keep_weights)
    assert all(key.startswith((layer, spread)) for key in new if "running" not in key)
    for mode in (True, False):
        changed.train(mode)
        changed(x).square().sum().backward()
    assert all(p.grad is not None for p in changed.parameters())
    changed.load_state_dict(before)
    build().load_state_dict(changed.state_dict())
    assert change.activation in str(report)
    copy.deepcopy(changed)(x)


def test_an_mlp_gets_the_settings_of_calibrate():
    model, x = nn.Sequential(nn.Linear(20, 900), nn.Tanh(), nn.Linear(900, 2)), torch.randn(300, 20)
    expected = calibrate(x.numpy(), 900)
    changed, report = elephantize(model, x)
    assert changed is model
    assert report.changes[0].a == pytest.approx(expected.a, rel=0.1)
    assert report.changes[0].sigma_bias == pytest.approx(expected.sigma_bias, rel=0.1)
    assert report.changes[0].overlap == pytest.approx(expected.overlap, abs=0.05)
    bound = 1 / 20**0.5
    assert 0.98 * bound < model[0].weight.abs().max() <= bound
    steps = model[0].bias.detach().diff()
    assert steps.min() == pytest.approx(float(steps.max()), rel=1e-2)
    _, report = elephantize(model, x, a=0.3, sigma_bias=0.7, head="ridge", learnable=True)
    assert (report.changes[0].a, report.changes[0].sigma_bias) == (0.3, 0.7)
    assert model[1].a.item() == pytest.approx(0.3)


def test_functional_dropout_still_follows_the_mode():
    model, _ = elephantize(CNN(), images())
    x = images()
    model.train()
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_statistics_of_batch_normalisation_are_used_but_not_moved():
    model = nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 2)
    )  # fmt: skip
    x = torch.randn(50, 5) + 2
    for _ in range(3):
        model(x)
    before = copy.deepcopy(model[1].state_dict())
    model[0].eval()
    elephantize(model, x)
    assert all(torch.equal(before[k], v) for k, v in model[1].state_dict().items())
    assert model.training
    assert not model[0].training


def test_a_normalised_layer_evaluates_well_at_once():
    model = nn.Sequential(
        nn.Conv2d(1, 30, 3), nn.BatchNorm2d(30), nn.ReLU(), nn.Flatten(), nn.Linear(30 * 36, 2)
    )
    x = 5 + 10 * images()
    model, report = elephantize(model, x)
    model.train()
    trained = model[:3](x)
    model.eval()
    torch.testing.assert_close(model[:3](x), trained, atol=0.03, rtol=0)
    assert report.changes[0].biases == "1"


def test_modules_can_be_named():
    model = mlp()
    _, report = elephantize(model, torch.randn(50, 20), layers=["1", "3"])
    assert [(c.activation, c.layer, c.units) for c in report.changes] == [
        ("1", "0", 64),
        ("3", "2", 500),
    ]
    assert isinstance(model[1], Elephant)
    model = Dynamic()
    _, report = elephantize(model, torch.randn(50, 5), layers=["act"])
    assert (report.changes[0].layer, report.changes[0].replaced) == ("fc1", "Tanh")


def test_frozen_weights_are_kept():
    model = mlp()
    model[2].requires_grad_(False)
    weights = model[2].weight.clone()
    _, report = elephantize(model, torch.randn(50, 20))
    assert torch.equal(model[2].weight, weights)
    assert "need no gradient" in str(report)


def test_several_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.act, self.out = nn.Linear(6, 50), nn.ReLU(), nn.Linear(50, 1)

        def forward(self, state, action):
            return self.out(self.act(self.fc(torch.cat([state, action], 1))))

    state, action = torch.randn(30, 4), torch.randn(30, 2)
    for inputs in ((state, action), {"action": action, "state": state}):
        assert elephantize(Two(), inputs)[1].changes[0].units == 50


def test_an_error_leaves_the_model_as_it_was():
    for build, inputs in ((mlp, torch.ones(2, 20)), (encoder, torch.ones(2, 7, 16))):
        model = build()
        before, shown = copy.deepcopy(model.state_dict()), repr(model)
        with pytest.raises(ValueError, match="all examples look the same"):
            elephantize(model, inputs)
        assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
        assert repr(model) == shown


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x))) if self.training else self.fc1(x)


class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.ao.nn.quantized.Linear(5, 5)


@pytest.mark.parametrize(
    ("build", "inputs", "settings", "message"),
    [
        (lambda: nn.Linear(5, 2), torch.ones(2, 5), {}, "has no activation that is known"),
        (lambda: nn.Sequential(nn.Linear(5, 2), nn.Sigmoid()), torch.ones(2, 5), {},
         "the only activation, 1, is at the output"),
        (Dynamic, torch.ones(2, 5), {},
         r"cannot trace Dynamic \(.*\); name the activation.* 'act'"),
        (Dynamic, torch.ones(2, 5), {"layers": ["avt"]},
         "no module 'avt'; its activations are 'act'"),
        (Dynamic, torch.ones(2, 5), {"layers": ["fc1"]}, "'fc1' is Linear, not an activation"),
        (Dynamic, torch.ones(2, 5), {"layers": ["act"]}, "all examples look the same to 'act'"),
        (Branching, torch.ones(2, 5), {}, "computes differently in training"),
        (Quantised, torch.ones(2, 5), {}, "'fc' is quantised"),
        (lambda: mlp().to(torch.complex64), torch.ones(2, 20), {}, "'0.weight' is complex"),
        (mlp, torch.ones(2, 20, dtype=torch.complex64), {}, "example_inputs are complex"),
        (mlp, torch.ones(2, 20, device="meta"), {}, "are on meta and the model on cpu"),
        (mlp, torch.ones(1, 20), {}, "must be two or more inputs"),
        (mlp, torch.full((2, 20), torch.nan), {}, "have NaN or infinity"),
        (mlp, "x", {}, "must be a tensor, or a tuple"),
        (lambda: "model", torch.ones(2, 20), {}, "must be an nn.Module, got str"),
        (mlp, torch.ones(2, 20), {"a": -1.0}, "finite and above 0"),
        (mlp, torch.ones(2, 20), {"head": "lstm"}, "head must be one of"),
        (lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(2, 5), {},
         "has no shape yet"),
        (lambda: torch.compile(mlp()), torch.ones(2, 20), {}, "compiled already"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_refuses_in_one_sentence(build, inputs, settings, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        elephantize(build(), inputs, **settings)
    assert "\n" not in str(caught.value)


def test_a_graph_that_computes_something_else_is_refused():
    class Optional(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 20), nn.Linear(20, 2)

        def forward(self, x, offset=None):
            out = self.last(torch.relu(self.first(x)))
            return out if offset is None else out * 0 + 7

    with pytest.raises(ValueError, match="does not give the outputs of the model"):
        elephantize(Optional(), torch.randn(50, 4))


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(3, 64, 3, padding=1), nn.LayerNorm(64), nn.ReLU()
        self.fc = nn.Linear(64, 4)

    def forward(self, x):
        return self.fc(self.act(self.norm(self.conv(x).permute(0, 2, 3, 1))).mean((1, 2)))


def test_units_are_where_the_biases_are():
    x = torch.randn(20, 3, 8, 8)
    model, report = elephantize(ChannelsLast(), x)
    assert report.changes[0].units == 64
    assert len(model.norm.bias.unique()) == 64


@pytest.mark.parametrize("keep_weights", [False, True])
def test_an_activation_after_a_flatten_is_refused(keep_weights):
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.Flatten(), nn.ReLU(), nn.Linear(4096, 4)
    )
    weights = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="64 units of '0'; put the activation right after"):
        elephantize(model, torch.randn(20, 3, 8, 8), keep_weights=keep_weights)
    assert isinstance(model[2], nn.ReLU)
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


def test_a_graph_module_has_the_whole_state_in_the_order_of_the_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.unused = nn.Linear(20, 2), nn.Linear(3, 3)
            self.body = nn.Sequential(nn.Linear(4, 20))
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.last(torch.relu(self.body(x))) * self.scale

    model = Model()
    names, state = [n for n, _ in model.named_parameters()], copy.deepcopy(model.state_dict())
    made, _ = elephantize(model, torch.randn(50, 4))
    assert [n for n, _ in made.named_parameters()] == names
    made.load_state_dict(state)
