"""Managed Android devices as a plain async library; `devices.adapter` ties it to the broker."""
