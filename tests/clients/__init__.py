"""Published front-end packages as clients of a real edge."""
