"""The web page: one HTML document that holds its style and its scripts, so that it needs nothing but this server.

The files are in the directory of this module, as they are written; ``uplot/`` is uPlot (MIT licence) as it is published. The policy allows
exactly these scripts and styles, by their hashes: no other script and no other address, whatever a table is called.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final

STYLES: Final = ("uplot/uPlot.min.css", "page.css")
SCRIPTS: Final = ("uplot/uPlot.iife.min.js", "text.js", "verdict.js", "chart.js", "streams.js", "records.js", "page.js")


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _document(styles: list[str], scripts: list[str]) -> str:
    inserted = "".join(f"<style>{text}</style>\n" for text in styles)
    # At the end of the body: they find the elements that they fill.
    run = "".join(f"<script>{text}</script>\n" for text in scripts)
    return _read("page.html").replace("<!-- styles -->", inserted).replace("<!-- scripts -->", run)


_STYLES: Final = [_read(name) for name in STYLES]
_SCRIPTS: Final = [_read(name) for name in SCRIPTS]
_TEXT: Final = _document(_STYLES, _SCRIPTS)

PAGE: Final = {
    takes_commands: _TEXT.replace('data-commands="no"', f'data-commands="{"yes" if takes_commands else "no"}"').encode()
    for takes_commands in (False, True)
}
"""The page, for a run that takes commands and for one that does not."""

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"script-src {' '.join(map(_hash, _SCRIPTS))}",
        f"style-src {' '.join(map(_hash, _STYLES))}",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
