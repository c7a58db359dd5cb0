"""``applier demo --live``: a daemon follows the embedded broker, and the simulated upstream continues writing. Read ``session`` first."""
