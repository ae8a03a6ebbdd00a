"""The stores that keep sessions' logs: one contract (``edge.ports.Journal``), three places.

Imports nothing, so that a store costs only those who use it.
"""
