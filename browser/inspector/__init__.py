"""The engine's own inspector protocol over a private pair of sockets: no port, no driver process in between."""
