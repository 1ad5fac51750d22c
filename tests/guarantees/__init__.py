"""The guarantee table: every working tool under every hazard, measured on a real broker."""
