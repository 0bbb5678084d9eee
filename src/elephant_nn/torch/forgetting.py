"""What a model forgot while it learned something new: accuracy before and after, and changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elephant_nn.files import write_whole
from elephant_nn.torch.modes import evaluating

Metric = Callable[[Tensor, Tensor], Any]
Batches = Iterable[tuple[Tensor, Tensor]]
Slices = Batches | Mapping[str, Batches]


def accuracy(outputs: Tensor, y: Tensor) -> float:
    """The share of samples whose largest output is their label."""
    return float((outputs.argmax(1) == y).double().mean())


@dataclass(frozen=True)
class ForgettingReport:
    """Measurements of a model over time.

    Attributes:
        steps: when it was measured, as told to `Watch.measure`; "before" and "after" otherwise.
        old: names of the slices that it knew before.
        new: names of the slices that it is to learn.
        values: the metric, one row per measurement, one column per slice, old ones first.
        change: mean change of the outputs on the probe inputs since the first measurement, relative
            to the mean size of the outputs then; one number per measurement.
        flipped: share of the probe inputs whose largest output is another one than at first.
    """

    steps: tuple[Any, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    values: NDArray[np.float64]
    change: NDArray[np.float64]
    flipped: NDArray[np.float64]

    @property
    def forgetting(self) -> float:
        """Mean over the old slices of the best value so far minus the last one."""
        known = self.values[:, : len(self.old)]
        return float(np.mean(known.max(0) - known[-1]))

    @property
    def backward_transfer(self) -> float:
        """Mean over the old slices of the last value minus the first: below 0 is forgetting."""
        known = self.values[:, : len(self.old)]
        return float(np.mean(known[-1] - known[0]))

    @property
    def learned(self) -> float:
        """Mean over the new slices of the last value minus the first."""
        found = self.values[:, len(self.old) :]
        return float(np.mean(found[-1] - found[0])) if self.new else 0.0

    def table(self) -> str:
        """A Markdown table, one line per slice."""
        lines = ["| slice | before | after | change |", "| --- | --- | --- | --- |"]
        for kind, names in (("old", self.old), ("new", self.new)):
            for name in names:
                values = self.values[:, (*self.old, *self.new).index(name)]
                label = name if name == kind else f"{kind}: {name}"
                lines.append(
                    f"| {label} | {values[0]:.3f} | {values[-1]:.3f} | "
                    f"{values[-1] - values[0]:+.3f} |"
                )
        return "\n".join(lines)

    def __str__(self) -> str:
        return (
            f"{self.table()}\n\nforgetting {self.forgetting:.3f}, backward transfer "
            f"{self.backward_transfer:+.3f}, learned {self.learned:+.3f}\noutputs on the probe "
            f"inputs changed by {self.change[-1]:.1%}; {self.flipped[-1]:.1%} of their predictions "
            "are different"
        )

    def figure(self, path: str | PathLike[str] | None = None) -> Any:
        """A matplotlib figure of every slice over time, written to `path` if there is one."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "ForgettingReport.figure needs matplotlib; install it with pip install matplotlib"
            ) from error
        figure = Figure(figsize=(6, 3.5), layout="constrained")
        ax = figure.subplots()
        numbers = all(isinstance(step, int | float) for step in self.steps)
        x = np.array(self.steps, float) if numbers else np.arange(len(self.steps))
        for i, name in enumerate((*self.old, *self.new)):
            style = "-" if i < len(self.old) else "--"
            ax.plot(x, self.values[:, i], style, marker="o", markersize=3, label=name)
        if not numbers:
            ax.set_xticks(x, [str(step) for step in self.steps])
        ax.set_ylabel("metric")
        ax.set_title(f"forgetting {self.forgetting:.3f}, learned {self.learned:+.3f}")
        ax.legend(frameon=False, title="old: solid, new: dashed", fontsize="small")
        if path is not None:
            import io

            picture = io.BytesIO()
            figure.savefig(picture, format=Path(path).suffix.lstrip(".") or "png")
            write_whole(Path(path), picture.getvalue())
        return figure


class Watch:
    """Measure a model during training, in a loop of the user's own.

    No task identities are needed, only data the model knew and data it is to learn. Training is
    not touched: measurements leave training modes, statistics and random numbers as they were.

    Args:
        model: anything that is called with inputs and returns outputs.
        old: batches `(x, y)`, for example a `DataLoader`, of what the model knew before; or a
            dictionary of such slices by name. `by_label` cuts a loader into one slice per class.
        new: the same for what it is to learn; may be left out.
        metric: `metric(outputs, y)` over all samples of a slice; higher is better.
        probe: inputs on which changes of the outputs are measured; default: the first batch of the
            first old slice.
    """

    def __init__(
        self, model: nn.Module, old: Slices, new: Slices | None = None, metric: Metric = accuracy,
        probe: Tensor | None = None,
    ):  # fmt: skip
        self.model, self.metric = model, metric
        self.old, self.new = _named(old, "old"), _named(new, "new")
        if not self.old:
            raise ValueError("Watch: there is no old slice; give batches of what the model knew")
        both = set(self.old) & set(self.new)
        if both:
            raise ValueError(f"Watch: {sorted(both)[0]!r} is both an old and a new slice")
        if probe is None:
            with _own_random_numbers():
                probe = next(iter(next(iter(self.old.values()))))[0]
        self.probe = probe
        self.steps: list[Any] = []
        self.values: list[list[float]] = []
        self.outputs: list[Tensor] = []
        self._change: list[tuple[float, float]] = []

    def measure(self, step: Any = None) -> dict[str, float]:
        """Measure all slices now, before the first training step and whenever wanted after it.

        Args:
            step: a number or name for the report; default: how many measurements there were.
        """
        with evaluating(self.model), torch.no_grad(), _own_random_numbers():
            slices = {**self.old, **self.new}
            found = {name: self._value(name, batches) for name, batches in slices.items()}
            outputs = self._outputs(self.probe)
        self.steps.append(len(self.steps) if step is None else step)
        self.values.append(list(found.values()))
        if not self.outputs:
            self.outputs.append(outputs)
        self._change.append(_change(self.outputs[0], outputs))
        return found

    def report(self) -> ForgettingReport:
        """All measurements so far; the first is what the last is compared with."""
        if len(self.steps) < 2:
            raise RuntimeError(
                "Watch: call measure before training and after it; there are "
                f"{len(self.steps)} measurements so far"
            )
        change, flipped = np.array(self._change).T
        return ForgettingReport(
            tuple(self.steps), tuple(self.old), tuple(self.new), np.array(self.values), change,
            flipped,
        )  # fmt: skip

    def _value(self, name: str, batches: Batches) -> float:
        outputs, labels = [], []
        for x, y in batches:
            outputs.append(self._outputs(x))
            labels.append(y.cpu())
        if not outputs:
            raise ValueError(
                f"Watch: the slice {name!r} has no batches; an iterator is empty after its first "
                "use, so give a DataLoader or a list"
            )
        return float(self.metric(torch.cat(outputs), torch.cat(labels)))

    def _outputs(self, x: Tensor) -> Tensor:
        first = next(self.model.parameters(), None)
        out: Tensor = self.model(x if first is None else x.to(first.device))
        return out.detach().cpu()


def forgetting_report(
    model: nn.Module, old_loader: Slices, new_loader: Slices | None = None,
    metric: Metric = accuracy, *, before: nn.Module | Mapping[str, Any],
    probe: Tensor | None = None,
) -> ForgettingReport:  # fmt: skip
    """Compare a model with what it was before it learned something new.

    Args:
        model: the model now.
        old_loader: batches `(x, y)` of what it knew before, or a dictionary of slices by name.
        new_loader: the same for what it learned.
        metric: `metric(outputs, y)`, by default the accuracy.
        before: the model as it was, or its `state_dict`, for example
            `copy.deepcopy(model.state_dict())`.
        probe: inputs on which changes of the outputs are measured; see `Watch`.
    """
    watch = Watch(model, old_loader, new_loader, metric, probe)
    if isinstance(before, nn.Module):
        watch.model = before
        watch.measure("before")
        watch.model = model
    else:
        now = {name: _copied(value) for name, value in model.state_dict().items()}
        try:
            model.load_state_dict(before)
            watch.measure("before")
        finally:
            model.load_state_dict(now)
    watch.measure("after")
    return watch.report()


def by_label(loader: Batches) -> dict[str, Batches]:
    """One slice per label, in memory."""
    found: dict[int, list[tuple[Tensor, Tensor]]] = {}
    with _own_random_numbers():
        for x, y in loader:
            for label in y.unique().tolist():
                found.setdefault(label, []).append((x[y == label], y[y == label]))
    return {str(label): found[label] for label in sorted(found)}


def _change(first: Tensor, now: Tensor) -> tuple[float, float]:
    if first.shape != now.shape:
        raise ValueError(
            f"Watch: outputs had the shape {tuple(first.shape)} at first and have "
            f"{tuple(now.shape)} now; measure with a model whose outputs keep their number"
        )
    first, now = first.double().flatten(1), now.double().flatten(1)
    finite = first.isfinite() & now.isfinite()  # a ridge head has -inf for unseen classes
    gap = torch.where(finite, now - first, 0).norm(dim=1).mean()
    size = torch.where(finite, first, 0).norm(dim=1).mean()
    flipped = (first.argmax(1) != now.argmax(1)).double().mean()
    return float(gap / size.clamp_min(1e-30)), float(flipped)


def _named(slices: Slices | None, name: str) -> dict[str, Batches]:
    if slices is None:
        return {}
    return dict(slices) if isinstance(slices, Mapping) else {name: slices}


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """A shuffling DataLoader draws from torch's generator; give the numbers back."""
    with torch.random.fork_rng(devices=[]):
        yield
