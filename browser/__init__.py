"""Chromium under generations, as a plain async library; `browser.adapter` ties it to the broker."""
