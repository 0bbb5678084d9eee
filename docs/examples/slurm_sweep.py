"""A sweep on a SLURM cluster: pip install "elephant-nn[cluster]" dask-jobqueue on the login node.

Every job is one worker that runs one shard at a time. Killed or run out of time? The same command
continues: finished runs are in the store, unfinished ones in the shared checkpoints.

    python slurm_sweep.py split-mnist --jobs 64
    python slurm_sweep.py sine --local 2      # try it on this machine first
"""

import argparse
import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import LocalCluster

from elephant_nn.experiments import sweep
from elephant_nn.runs.cluster import cluster_executor


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--methods", default="")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--local", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    call = parser.parse_args()
    cluster = LocalCluster(call.local, threads_per_worker=1) if call.local else slurm(call.jobs)
    with cluster:
        address, shared = cluster.scheduler_address, call.out / "checkpoints"
        tell = lambda text: print(text, file=sys.stderr)
        with cluster_executor(address, checkpoints=shared, notice=tell) as executor:
            methods = [name for name in call.methods.split(",") if name]
            chosen = sweep(
                call.name, methods=methods, seeds=call.seeds, out=call.out, executor=executor
            )
    print(chosen)


def slurm(jobs: int) -> SLURMCluster:
    cluster = SLURMCluster(
        queue="cpu",  # your partition
        cores=1,  # threads of one run
        processes=1,
        memory="4GB",
        walltime="04:00:00",
        job_extra_directives=["--requeue"],
        worker_extra_args=["--lifetime", "235m"],  # end before SLURM ends the job
        local_directory="$TMPDIR",
    )
    cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)  # jobs that end are replaced
    return cluster


if __name__ == "__main__":
    main()
