"""Rules: ids, generations, leases, grants, operation states, fingerprints.

Pure functions and frozen values, and the port.
"""
