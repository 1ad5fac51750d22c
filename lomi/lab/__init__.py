"""The device lab: a plan of tests, run in shards on leased phones, every test accounted for."""
