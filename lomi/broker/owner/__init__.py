"""The owner's own commands: look, reduce authority, stop, reconcile; and YOLO, which asks for a terminal.

Nothing is imported here, so that a command line that only reads `answers` loads no broker.
"""
