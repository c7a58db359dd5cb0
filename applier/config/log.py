"""``[log]``: how log lines are written."""

from typing import Literal

from applier.config.section import Section


class LogConfig(Section):
    """Format and level of the log on standard error."""

    format: Literal["text", "json"] = "text"
    """Text for people, or one JSON object per line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """For ``run`` without a terminal. Other commands log warnings, or more with ``--verbose``."""
