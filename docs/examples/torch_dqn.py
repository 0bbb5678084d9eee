"""DQN of Stable-Baselines3 on CartPole, replay buffer of 32: ReLU, and an elephantized policy.

The learning rate of each is chosen by other seeds. Run: python docs/examples/torch_dqn.py
"""

import copy
import sys

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy
from torch import nn

from elephant_nn.torch import elephantize

SEEDS, TUNING_SEEDS, RATES = range(3), (100,), (3e-4, 1e-3)
STEPS, BUFFER = 10_000, 32


def agent(name, rate, seed, buffer=BUFFER):
    torch.set_num_threads(1)
    model = DQN(
        "MlpPolicy", "CartPole-v1", learning_rate=rate, buffer_size=buffer, batch_size=32,
        learning_starts=100, train_freq=1, gradient_steps=1, target_update_interval=200,
        exploration_fraction=0.2, exploration_final_eps=0.05, seed=seed,
        policy_kwargs={"net_arch": [256], "activation_fn": nn.ReLU},
    )  # fmt: skip
    if name == "elephant":
        # Positions, speeds, angles and their rates as CartPole has them.
        examples = torch.randn(500, 4) * torch.tensor([1.0, 1.0, 0.1, 1.0])
        elephantize(model.q_net.q_net, examples)
        model.q_net_target.q_net = copy.deepcopy(model.q_net.q_net)
    return model


def mean_return(name, rate, seed, steps=STEPS):
    """Mean return of the greedy policy over two evaluations in the second half of training."""
    model, found = agent(name, rate, seed), []
    for part in range(4):
        model.learn(steps // 4, reset_num_timesteps=False)
        if part >= 2:
            found.append(evaluate_policy(model, model.get_env(), 5, warn=False)[0])
    return float(np.mean(found))


def main():
    print(f"{STEPS} steps, buffer of {BUFFER}")
    print("| policy | learning rate | mean return | runs |")
    print("| --- | --- | --- | --- |")
    for name in sys.argv[1:] or ("ReLU", "elephant"):
        scores = [np.mean([mean_return(name, r, s) for s in TUNING_SEEDS]) for r in RATES]
        print(name, dict(zip(RATES, scores, strict=True)), file=sys.stderr)
        rate = RATES[int(np.argmax(scores))]
        found = [mean_return(name, rate, seed) for seed in SEEDS]
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        print(
            f"| {name} | {rate:g} | {np.mean(found):.0f} ± {error:.0f} | {len(found)} |", flush=True
        )


if __name__ == "__main__":
    main()
