"""The HTTP room: requests in, problems and event streams out.

Knows nothing of journals, leases and runtimes: everything it serves it asks the registry for.
"""
