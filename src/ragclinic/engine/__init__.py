"""The RAG itself: ingest, embed, search, assemble, generate."""
