"""``python -m edge``: one edge process, configured by its environment."""

from __future__ import annotations

from edge.main import main

if __name__ == "__main__":
    main()
