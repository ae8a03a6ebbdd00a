"""The edge: turns an agent runtime's gRPC streams into durable, resumable Server-Sent Events."""
