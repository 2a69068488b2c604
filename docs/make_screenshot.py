"""Makes docs/report.png, the picture of the report that the README shows, from a run on onnxruntime.

    python docs/make_screenshot.py [RUN]

Without RUN, a run is made first. Needs Chromium, as the tests of the report do (tests/browser/devtools.py).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "browser"))

from devtools import Browser, find_browser

from onnxspec.reports.page import write_report

WIDTH, HEIGHT = 1240, 728
LARGEST = 150_000
PICTURE = Path(__file__).parent / "report.png"


def main() -> None:
    path = find_browser()
    if path is None:
        sys.exit("no Chromium on this machine: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "run"
        if len(sys.argv) < 2:
            command = [
                sys.executable,
                "-c",
                "from onnxspec.conformance.cli.application import main; main()",
                "run",
                "--out",
                run,
            ]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        page = write_report([run], folder / "report")
        with Browser(path) as browser:
            browser.size(WIDTH, HEIGHT)
            browser.open(page.resolve().as_uri())
            browser.page.screenshot(path=PICTURE)
    size = PICTURE.stat().st_size
    if size > LARGEST:
        sys.exit(f"{PICTURE} has {size:,} bytes, more than {LARGEST:,}: take a smaller window")
    print(f"{PICTURE}: {size:,} bytes")


if __name__ == "__main__":
    main()
