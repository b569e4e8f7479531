"""The page in a real browser: no console errors, no requests, no sideways scrolling."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import made_up
import pytest

from fallow.report.study_page import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
PHONE_PX = 390
NO_PAGE = "not an origin"
"""The initiator of a request in the log of the browser, if it is not a page."""
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)
MEASURE = """<!doctype html><iframe width={width} height=800 srcdoc="{page}"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  document.body.append(`sizes ${{root.clientWidth}} ${{root.scrollWidth}}`);
}};
</script>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium here: on Debian, apt install chromium"
)


def browse(page: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Open a page and return what the browser writes."""
    done = subprocess.run(
        [str(BROWSER), *FLAGS, f"--user-data-dir={folder}", *more, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def requests(log: Path) -> set[str]:
    """Addresses that a page requested over a network, without those of the browser."""
    events = json.loads(log.read_text())["events"]
    asked = [event.get("params", {}) for event in events]
    return {
        request["url"]
        for request in asked
        if request.get("initiator", NO_PAGE) != NO_PAGE
        and request.get("url", "").startswith(("http", "ws", "ftp"))
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with long names, several figures and something missing."""
    levels = [one for one in made_up.sweeps() if "period_frames=60000" in one.condition]
    rows = made_up.rows(levels + made_up.table1()[:2], seeds=(0, 1))
    folder = tmp_path_factory.mktemp("studies") / ("a-study-with-a-long-name" * 4)
    return write_report(made_up.folder(folder, rows))


def test_no_errors_and_no_requests(page: Path, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    done = browse(page, tmp_path / "user", f"--log-net-log={log}", "--dump-dom")
    assert console(done) == []
    assert requests(log) == set()
    assert "Return before and after the change" in done.stdout
    shown = re.findall(r'<button type="button" class="copy"( hidden)?', done.stdout)
    assert shown == [""] * len(shown) and shown  # the script ran


def test_the_checks_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<script>console.error('no'); fetch('http://127.0.0.1:9/x')</script>"
    )
    log = tmp_path / "net.json"
    done = browse(bad, tmp_path / "user", f"--log-net-log={log}", "--dump-dom")
    assert console(done) != []
    assert "http://127.0.0.1:9/x" in requests(log)
    wide = tmp_path / "wide.html"
    wide.write_text("<div style='width: 900px'>wide</div>")
    client, scroll = sizes(wide, PHONE_PX, tmp_path)
    assert scroll > client


def sizes(page: Path, width: int, folder: Path) -> tuple[int, int]:
    """Width of the view and of what is in it, in a frame `width` pixels wide."""
    outer = folder / f"outer-{width}.html"
    content = html.escape(page.read_text(), quote=True)
    outer.write_text(MEASURE.format(width=width, page=content))
    done = browse(outer, folder / "user", "--dump-dom", "--virtual-time-budget=5000")
    found = re.search(r"sizes (\d+) (\d+)", done.stdout)
    assert found, done.stderr
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("width", [PHONE_PX, 1100])
def test_nothing_scrolls_sideways(page: Path, tmp_path: Path, width: int) -> None:
    client, scroll = sizes(page, width, tmp_path)
    assert width - 20 <= client <= width
    assert scroll <= client
