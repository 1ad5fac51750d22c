"""What can be asked: tool definitions, closed models, scopes, codes, reasons and limits.

Pure; imports nothing else of ours.
"""
