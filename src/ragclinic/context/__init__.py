"""Chunks in, the smallest sufficient context out; no network, no model server."""
