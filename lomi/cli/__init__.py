"""Thin commands; every reading command also has --json."""
