"""A run on a Dask cluster: its shards are tasks, and their folders are merged."""
