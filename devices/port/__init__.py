"""Words of the port: what the library says, as the contract's values. Only `devices.adapter` uses these."""
