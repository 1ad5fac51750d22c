"""Lomi: a local broker that shares devices, browsers and terminals under one rule set."""
