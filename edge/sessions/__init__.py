"""The shell round the core: drivers, tails, viewers, rooms, and the registry that finds them.

Knows nothing of HTTP, SSE bytes, protobuf or any store: those sit above and reach it through ports.
"""
