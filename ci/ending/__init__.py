"""How programs of this folder end when they are told to: with all that they have started."""
