"""One owner per device: launch, boot, watch, stop, and the sweep after a crash."""
