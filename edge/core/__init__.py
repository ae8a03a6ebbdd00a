"""Every decision of the edge, as pure functions and small state.

Knows nothing of asyncio, clocks, randomness, protobuf, Quart or Firestore: time and chance arrive
as arguments, and what is decided leaves as a value for a shell to act on.
"""
