"""``applier demo --live``: a daemon follows the embedded broker, and the simulated upstream goes on writing. Read ``session`` first."""
