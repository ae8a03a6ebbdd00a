"""The edge's gRPC side: a runtime's events to drafts and back, and the client that asks for them.

Knows nothing of journals, viewers or the web. ``client.GrpcRuntime`` implements ``edge.ports.Runtime``.
"""
