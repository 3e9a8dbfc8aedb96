"""RAG Clinic finds out why a retrieval-augmented question answering service is slow, and makes it fast."""

__version__ = "0.1.0"

__all__ = ["__version__"]
