"""`python -m lomi.demo` is `lomi demo`."""

from lomi.cli.demo import demo

demo()
