"""The stand-in for a model: it plays a written script for each task, so that the gate itself can be tested."""
