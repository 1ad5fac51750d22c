"""`ci/qualify`: runs the gates and writes down what they showed, on which machine, of which sources."""
