"""Files opened by name: pinned roots, private 0600 files, atomic publication, hardened opening."""
