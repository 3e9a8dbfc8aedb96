"""What must be: memory, bandwidth and latency from model and hardware; pure functions."""
