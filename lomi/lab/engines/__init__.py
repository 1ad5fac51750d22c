"""Ways to run shards: on this machine, or on many hosts."""
