"""Words of the port: what the library says, as the contract's values. Only `browser.adapter` uses these."""
