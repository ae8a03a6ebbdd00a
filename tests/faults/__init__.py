"""Faults on purpose: real processes over real sockets, killed, paused, cut off and told to stop."""
