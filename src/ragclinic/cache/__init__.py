"""The caches: answers by question, index state and settings."""
