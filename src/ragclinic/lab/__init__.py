"""The demo and the reproducible experiments, one file each."""
