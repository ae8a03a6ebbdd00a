"""The project's own documents, where they are at hand: a container may not have them."""

from __future__ import annotations

from pathlib import Path

from agent_runtime.errors import ToolError

NAMES = {
    "readme": "README.md",
    "architecture": "ARCHITECTURE.md",
    "protocol": "proto/PROTOCOL.md",
}
MAX_HITS = 5
MAX_LINE_CHARACTERS = 200
MAX_READ_CHARACTERS = 1500


class Library:
    """Searches and reads the documents in one folder."""

    def __init__(self, folder: Path | None) -> None:
        """``None`` means the folder that holds the package, as in a checkout."""
        self._folder = folder or Path(__file__).parents[2]

    def search(self, query: str) -> list[dict[str, object]]:
        """Return the first lines that hold all words of the query. Raises ``ToolError``."""
        words = query.lower().split()
        hits: list[dict[str, object]] = []
        for name, text in self._documents().items():
            for number, line in enumerate(text.splitlines(), start=1):
                if words and all(word in line.lower() for word in words):
                    found = line.strip()[:MAX_LINE_CHARACTERS]
                    hits.append({"document": name, "line": number, "text": found})
        return hits[:MAX_HITS]

    def read(self, name: str) -> str:
        """Return the beginning of a document. Raises ``ToolError``."""
        documents = self._documents()
        if name.lower() not in documents:
            known = ", ".join(documents)
            raise ToolError(f"There is no such document; there are: {known}.", reason="NO_DOCUMENT")
        return documents[name.lower()][:MAX_READ_CHARACTERS]

    def _documents(self) -> dict[str, str]:
        paths = {name: self._folder / place for name, place in NAMES.items()}
        found = {
            name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()
        }
        if not found:
            raise ToolError("The documents are not installed here.", reason="NO_DOCUMENTS")
        return found
