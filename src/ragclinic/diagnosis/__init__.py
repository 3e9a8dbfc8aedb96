"""Signals and physics in, a `Diagnosis` out; no I/O."""
