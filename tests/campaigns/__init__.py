"""Long runs under faults, as commands: the same code as in the tests, with other numbers."""
