"""How many hosts a lab needs: a model, a simulation that checks it, and a measurement of what goes into both."""
