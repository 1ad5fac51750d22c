"""Reproducible device images, and `paper`, the simulated phone.

`images` holds the manifest, `locks` the lock file, `avd_files` writes AVDs, `verification` proves that two boots show
the same, and `paper` is the emulator command of the simulated images. Nothing is imported here: the phone's process
must start fast.
"""
