"""The device side of the adb protocol: packets, keys, transports, services and file sync."""
