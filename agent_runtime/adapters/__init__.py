"""Agents over other runtimes and model APIs. Each is an extra; none knows another."""
