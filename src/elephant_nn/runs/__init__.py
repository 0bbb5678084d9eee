"""From cells to rows: grids, compiled shards, checkpoints, the store, executors."""
