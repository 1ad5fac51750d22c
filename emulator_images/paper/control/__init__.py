"""The emulator's gRPC controller, for the few calls that clients of a phone need; served when grpcio is installed."""
