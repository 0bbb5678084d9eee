"""What a cluster is doing, from its scheduler and from the events of workers and commands."""

import time
from dataclasses import dataclass, field
from typing import Any

from distributed import Client

from elephant_nn.runs.remote import TOPIC, overview


@dataclass
class Task:
    """A shard that runs: on which worker, what, since when, and the finished fraction."""

    label: str
    worker: str
    since: float
    fraction: float = 0.0


@dataclass
class Command:
    """A table that a connected command runs."""

    table: str
    done: float
    total: int
    began: float
    first: float
    last: float

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before anything is known."""
        made, taken = self.done - self.first, self.last - self.began
        return taken / made * (self.total - self.done) if made > 0 and taken > 0 else None


@dataclass
class Status:
    dashboard: str
    workers: dict[str, dict[str, Any]]
    tasks: dict[str, Task] = field(default_factory=dict)
    commands: dict[tuple[str, str], Command] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    waiting: int = 0


def cluster_status(client: Client) -> Status:
    """What runs where, how far, what failed, and how long commands will take."""
    seen = client.run_on_scheduler(overview)
    status = Status(str(client.dashboard_link), seen["workers"], waiting=seen["waiting"])
    for when, event in client.get_events(TOPIC) or ():
        match event:
            case {"kind": "start", "key": key, "worker": worker, "label": label}:
                status.tasks[key] = Task(label, worker, when)
            case {"kind": "progress", "key": key, "fraction": fraction} if key in status.tasks:
                status.tasks[key].fraction = fraction
            case {"kind": "failed", "label": label, "reason": reason}:
                status.failures.append(f"{label}: {reason}")
            case {"kind": "unfit", "worker": worker, "reason": reason}:
                status.failures.append(f"{worker} takes no shards: {reason}")
            case {"kind": "command", "client": name, "table": table, **at}:
                if name in seen["clients"]:
                    _follow(status, name, table, at)
    running = {key for worker in seen["workers"].values() for key in worker["keys"]}
    status.tasks = {key: task for key, task in status.tasks.items() if key in running}
    status.waiting += len(running) - len(status.tasks)
    return status


def _follow(status: Status, client: str, table: str, at: Any) -> None:
    command = status.commands.get((client, table))
    if command is None or command.total != at["total"]:  # the next group of runs
        command = Command(table, at["done"], at["total"], at["time"], at["done"], at["time"])
        status.commands[client, table] = command
    command.done, command.last = at["done"], at["time"]


def lines(status: Status) -> list[str]:
    """The status as text."""
    text = [f"dashboard: {status.dashboard}"]
    for command in status.commands.values():
        left = command.seconds_left
        rest = f", about {left:.0f} s left" if left else ""
        text.append(f"{command.table}: {int(command.done)} of {command.total} runs{rest}")
    text.append(f"{len(status.workers)} workers, {status.waiting} shards wait")
    for address, worker in status.workers.items():
        mine = [task for task in status.tasks.values() if task.worker == address]
        doing = "; ".join(
            f"{task.label}: {task.fraction:.0%}, {time.time() - task.since:.0f} s" for task in mine
        )
        idle = "takes no shards" if worker["given_up"] else "idle"
        text.append(f"  {address} on {worker['host']}: {doing or idle}")
    return [*text, *(f"failed: {reason}" for reason in status.failures[-10:])]
