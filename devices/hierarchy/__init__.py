"""The UI hierarchy: bounded reading of hostile XML, node identity, outlines and diffs."""
