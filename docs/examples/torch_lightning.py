"""An elephantized model in Lightning, which learns digits sorted by class: nothing special.

Run: python docs/examples/torch_lightning.py
"""

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from elephant_nn.torch import Watch, elephantize


class Digits(lightning.LightningModule):
    def __init__(self, model, rate):
        super().__init__()
        self.model, self.rate = model, rate

    def training_step(self, batch):
        x, y = batch
        return functional.cross_entropy(self.model(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.model.parameters(), self.rate)


def run(name, rate=1e-3):
    """Accuracy on all digits after 0 to 4 and then 5 to 9, ten epochs each."""
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 1000), nn.ReLU(), nn.Linear(1000, 10))
    if name == "elephant":
        elephantize(model, x[:300])
    module, test = Digits(model, rate), torch.arange(len(x)) % 4 == 0
    watch = Watch(model, {"0 to 4": [(x[test & (y < 5)], y[test & (y < 5)])]},
                  {"5 to 9": [(x[test & (y >= 5)], y[test & (y >= 5)])]})  # fmt: skip
    for part in (y < 5, y >= 5):
        trainer = lightning.Trainer(
            max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        keep = part & ~test
        loader = DataLoader(TensorDataset(x[keep], y[keep]), 20, shuffle=True)
        trainer.fit(module, loader)
        watch.measure()
    return watch.report()


if __name__ == "__main__":
    for name in ("ReLU", "elephant"):
        print(f"{name}\n{run(name)}\n")
