"""Live sources of signals: pages of metrics, devices, growing log files; each stands alone."""
