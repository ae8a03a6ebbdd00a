"""Browser formats: pure functions from events to bytes. Knows nothing of how the bytes travel."""
