"""The emulator's own gRPC: the few messages we use, a channel with a token on loopback, and where it is announced."""
