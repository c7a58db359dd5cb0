"""Take the pictures of docs/page.md: the page in each state, as a browser shows it. ``make screenshots``.

The files are small: a palette of colours instead of all of them, and nothing of a second picture.
"""

import sys
from pathlib import Path

from PIL import Image

from tests.rig.browser import DESKTOP, PHONE, browser_at, chromium, opened
from tests.rig.page_state import page_of, stalled

IMAGES = Path(__file__).parents[2] / "docs" / "images"
TALL = DESKTOP | {"height": 760}
SHOTS = {
    "page-idle": ("idle", {"size": TALL}),
    "page-catching-up": ("catching_up", {"size": TALL}),
    "page-ddl": ("ddl_running", {"size": TALL, "dark": True}),
    "page-stalled": ("stalled", {"size": TALL}),
    "page-stopped": ("stopped", {"size": TALL}),
    "page-phone": ("stalled", {"size": PHONE, "dark": True}),
    "page-200-streams": ("stalled", {"size": DESKTOP | {"height": 1290}}),
}
COLOURS = 96


def main():
    path = chromium()
    if path is None:
        sys.exit("no Chromium: install the package chromium, or set APPLIER_TEST_CHROMIUM")
    IMAGES.mkdir(exist_ok=True)
    with browser_at(path) as browser:
        for name, (state, form) in SHOTS.items():
            with page_of(state) as shown:
                if name == "page-200-streams":
                    shown.make = lambda: stalled(200)
                take(browser, shown.address, IMAGES / f"{name}.png", form)


def take(browser, address, file, form):
    with opened(browser, address, **form) as tab:
        tab.wait_for_timeout(500)
        tab.screenshot(path=file)
    picture = Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(file, optimize=True)
    print(f"{file.relative_to(Path.cwd())}: {file.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
