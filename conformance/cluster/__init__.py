"""Runs on a Dask cluster: shards are tasks, and their folders are merged."""
