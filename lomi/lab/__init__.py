"""Lab runs: tests on leased phones, pages and terminals, from one laptop to many hosts."""
