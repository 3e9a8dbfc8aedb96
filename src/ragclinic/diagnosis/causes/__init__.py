"""The causes that can be found, one file each."""
