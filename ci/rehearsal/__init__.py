"""The reproducible emulator harness: plays scenario files on a real broker and holds runs against each other."""
