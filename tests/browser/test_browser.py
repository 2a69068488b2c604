"""The report in a real browser: opened from files, used with mouse and keyboard, light and dark.

Needs Chromium (Debian: ``apt-get install chromium``), and the extra ``browser`` for the accessibility checker.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from onnxspec.reports.page import write_report
from onnxspec.reports.run import read_runs
from onnxspec.reports.site.writing import write_site

from ..reports.conftest import (
    HOSTILE,
    KNOWN_CASE,
    NEW_CASE,
    add_evidence,
    exhibit,
    hostile_run,
    result,
    run_of,
    sample_results,
)
from ..reports.test_site import RELEASES, release
from .devtools import Browser, find_browser, started

_PATH = find_browser()
_REQUIRED = os.environ.get("ONNXSPEC_REQUIRE_BROWSER") == "1"
"""Set where the tests must run: a missing requirement is then a failure."""

pytestmark = pytest.mark.skipif(
    _PATH is None and not _REQUIRED, reason="no Chromium on this machine: apt-get install chromium"
)

OVERFLOWING = "[...document.querySelectorAll('{}')].filter((e) => e.scrollWidth > e.clientWidth).length"
DESKTOP, PHONE = (1280, 900), (390, 844)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def _window() -> Iterator[Browser]:
    assert _PATH is not None, "no Chromium on this machine: apt-get install chromium"
    with started(_PATH) as browser:
        yield browser


@pytest.fixture
def browser(_window: Browser) -> Browser:
    """Return a window of desktop size with the light theme."""
    _window.size(*DESKTOP)
    return _window


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a report on two targets, with evidence."""
    root = tmp_path_factory.mktemp("browser")
    first = run_of(root / "run", sample_results())
    add_evidence(first, {case: exhibit(case) for case in (NEW_CASE, KNOWN_CASE)}, larger={NEW_CASE: KNOWN_CASE})
    second = run_of(root / "two", sample_results("onnx-reference"), target="onnx-reference")
    write_report([first, second], root / "report")
    shutil.rmtree(first)
    shutil.rmtree(second)
    return root / "report"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site on three releases of one runtime."""
    root = tmp_path_factory.mktemp("site")
    runs, _ = read_runs([release(root, version) for version in RELEASES])
    page, _ = write_site(runs, root / "site", "onnxspec site runs --out site")
    return page.parent


def index(folder: Path) -> str:
    return (folder / "index.html").as_uri()


def pages(folder: Path) -> list[str]:
    return [index(folder), *(path.as_uri() for path in sorted((folder / "findings").glob("*.html")))]


@pytest.fixture
def addresses(folder: Path, site: Path) -> list[str]:
    """Return the pages of the report, and one of each kind of the site."""
    names = ("index.html", "runtimes/some-runtime.html", "features/clip.html")
    return [*pages(folder), *((site / name).as_uri() for name in names)]


def shown(browser: Browser) -> str:
    browser.settle()
    return str(browser.js("document.getElementById('shown').textContent.split(':')[0]"))


def choose(browser: Browser, name: str, value: str) -> None:
    """Set a field of the filters, and wait until the table is updated."""
    field = f"document.querySelector('#filters [name={name}]')"
    browser.js(f"{field}.value = {json.dumps(value)}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    browser.js("new Promise((done) => setTimeout(done, 200))")


def column(browser: Browser, name: str) -> list[str]:
    """Return the texts of a column in the drawn rows."""
    cells: list[str] = browser.js(
        f"[...document.querySelectorAll('#table tbody tr .{name}')].map((cell) => cell.textContent)"
    )
    return cells


def test_every_page_opens_from_its_file_and_asks_for_nothing_else(browser: Browser, addresses: list[str]) -> None:
    for address in addresses:
        browser.open(address)
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith("data:")] == [address]
        assert "onnxspec" in browser.js("document.title")


def test_new_failures_come_first_and_filters_and_search_leave_what_fits(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    assert shown(browser) == "540 results"
    assert column(browser, "c-verdict:is(td)")[:7] == ["wrong"] * 6 + ["wrong, known"]
    assert browser.js("location.hash") == ""
    choose(browser, "verdict", "failing")
    assert shown(browser) == "78 of 540 results"
    choose(browser, "type", "float32")
    choose(browser, "target", "0")
    assert shown(browser) == "15 of 540 results"
    assert set(column(browser, "c-type")) == {"float32"}
    assert browser.js("document.getElementById('shown').textContent").endswith(": 3 wrong; 12 wrong, known")
    choose(browser, "q", "input_forget lstm-14")
    assert shown(browser) == "3 of 540 results"
    assert all("input_forget" in name for name in column(browser, "c-case"))
    assert browser.js("location.hash") == "#results?q=input_forget+lstm-14&verdict=failing&type=float32&target=0"
    choose(browser, "q", "nothing like it")
    assert shown(browser) == "0 of 540 results"
    browser.click("#filters button[type=reset]")
    assert shown(browser) == "540 results"


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    worst = "#table [data-sort=worst]"
    browser.click(worst)
    numbers = [float(text) for text in column(browser, "c-worst:is(td)")]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 400
    assert browser.js(f"document.querySelector('{worst}').closest('th').ariaSort") == "descending"
    browser.click(worst)
    assert column(browser, "c-worst:is(td)")[0] == ""  # without a ratio
    browser.click("#table [data-sort=case]")
    names = column(browser, "c-case")
    assert names == sorted(names)


def test_what_an_id_has_in_common_is_folded_and_stands_in_full_where_it_is_opened(
    browser: Browser, tmp_path: Path
) -> None:
    rows = [result(f"lstm-14.float32.forward.bias.T4N{k}I2H5.00ff0{k}") for k in range(3)]
    page = write_report([run_of(tmp_path / "run", rows)], tmp_path / "report")
    browser.open(page.as_uri())
    assert browser.js("document.querySelector('#table tbody a').innerText") == "forward.bias.T4N0I2H5"
    browser.click("#table tbody a")
    assert browser.js("document.getElementById('detail-title').textContent") == rows[0]["case"]


def test_a_case_has_an_address_that_opens_it_and_leads_to_its_finding(browser: Browser, folder: Path) -> None:
    address = f"{index(folder)}#case?id={NEW_CASE}&target=1"
    browser.open(address)
    assert browser.js("document.getElementById('detail').open")
    assert browser.js("document.getElementById('detail-title').textContent") == NEW_CASE
    text = browser.js("document.getElementById('detail-body').innerText")
    assert text.index("Y_c[0, 1, 3] is 0.5") < text.index("Operator") < text.index("Clauses that it tests")
    assert "onnx-reference" in text
    folded = browser.js("document.getElementById('detail-body').textContent")
    assert "With input_forget set, the input gate is 1 minus the forget gate." in folded
    browser.key("Escape")
    browser.settle("location.hash === '#results' && !document.getElementById('detail').open")
    browser.click("#table tbody a")
    browser.click("#detail-body a[href='#finding-1']")
    browser.settle("location.hash === '#finding-1' && !document.getElementById('detail').open")
    browser.open(pages(folder)[1])
    browser.click("ul.cases a")
    browser.settle("location.hash.startsWith('#case?') && document.getElementById('detail').open")
    browser.open(f"{index(folder)}#case?id=none&target=0")
    assert not browser.js("document.getElementById('detail').open")
    assert browser.complaints == []


def test_every_column_is_seen_on_a_phone(browser: Browser, folder: Path) -> None:
    browser.size(*PHONE, phone=True)
    browser.open(f"{index(folder)}#results?verdict=new")
    row = "document.querySelector('#table tbody tr')"
    for text in ("wrong", "input_forget", "LSTM-14", "float32", "onnxruntime", "88.1", "Y_c[0, 1, 3] is 0.5", "0.4"):
        assert text in browser.js(f"{row}.innerText")
    cut = browser.js(f"[...{row}.cells].filter((e) => e.scrollWidth > e.clientWidth + 1 || e.offsetLeft < 0).length")
    assert cut == 0


def test_a_cell_of_the_matrix_leads_to_its_results(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    browser.click("a.cell[title='LSTM-14, clip, onnx-reference: 9 wrong (9 of the failures are known)']")
    assert shown(browser) == "9 of 540 results"
    assert set(column(browser, "c-target:is(td)")) == {"onnx-reference"}
    top = browser.js("document.getElementById('results').getBoundingClientRect().top")
    assert -50 < top < 300


def test_to_a_finding_and_back_and_to_its_results(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    browser.click("#finding-1 .title")
    browser.settle("location.pathname.includes('/findings/')")
    assert "input_forget keeps the input gate" in browser.js("document.querySelector('h1').textContent")
    browser.click("nav a[rel=next]")
    browser.settle("location.pathname.includes('/02-')")
    browser.page.go_back()
    browser.settle("location.pathname.includes('/01-')")
    browser.click("nav a[href*='index.html']")
    browser.settle("location.hash === '#finding-1' && document.querySelector('#finding-1:target') !== null")
    browser.page.go_back()
    browser.settle("location.pathname.includes('/01-')")
    browser.click("a[href*='#results?']")
    browser.settle("location.hash.startsWith('#results?')")
    assert shown(browser) == "3 of 540 results"
    assert browser.complaints == []


def test_all_of_it_by_keyboard(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    browser.key("Tab")
    assert browser.js("document.activeElement.className") == "skip"
    browser.key("Enter")
    browser.settle("document.activeElement.id === 'main'")
    browser.js("document.querySelector('#table tbody a').focus()")
    browser.key("Enter")
    browser.settle("document.getElementById('detail').open")
    browser.key("Escape")
    browser.settle("!document.getElementById('detail').open && document.activeElement.closest('tr').rowIndex === 1")
    browser.js("document.getElementById('more').focus()")
    browser.key("Enter")
    browser.settle("document.activeElement.closest('tr')?.rowIndex === 101")


def test_everything_that_can_be_used_is_reached_by_tab_and_seen(browser: Browser, folder: Path) -> None:
    browser.open(pages(folder)[1])
    usable = browser.js(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    seen = set()
    for _ in range(usable + 2):
        browser.key("Tab")
        outline, place = browser.js(
            "(() => { const e = document.activeElement;"
            " const all = [...document.querySelectorAll('*')];"
            " return [getComputedStyle(e).outlineStyle, e === document.body ? -1 : all.indexOf(e)]; })()"
        )
        if place >= 0:
            assert outline != "none", browser.js("document.activeElement.outerHTML.slice(0, 300)")
            seen.add(place)
    assert len(seen) == usable


def test_the_theme_is_that_of_the_system(browser: Browser, folder: Path) -> None:
    browser.open(index(folder))
    colours = []
    for system in THEMES:
        browser.page.emulate_media(color_scheme=system)
        colours.append(browser.js("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(251, 251, 250)", "rgb(20, 23, 26)"]


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_sideways(browser: Browser, addresses: list[str], width: int) -> None:
    browser.size(width, 844, phone=width < 500)
    for address in addresses:
        browser.open(address)
        assert browser.js("document.documentElement.scrollWidth") <= width, address
        # Elements wider than the window scroll by themselves; the keyboard must reach them for that.
        wide = browser.js(
            "[...document.querySelectorAll('main *')].filter((e) => e.scrollWidth > e.clientWidth + 1"
            " && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0).length"
        )
        assert wide == 0, address
        # The text of cells does not overflow, however many versions of operators a table has.
        browser.js(
            "document.querySelectorAll('.front tr').forEach((row) => "
            "{ for (let k = 0; k < 12; k += 1) row.append(row.lastElementChild.cloneNode(true)); }); 0"
        )
        assert browser.js(OVERFLOWING.format(".front td")) == 0, address
    if width == DESKTOP[0]:  # two targets side by side
        browser.open(addresses[0])
        assert browser.js(OVERFLOWING.format("#matrix .scroll")) == 0


def _checker() -> str | None:
    """Return the source of axe-core, or None."""
    spec = importlib.util.find_spec("axe_core_python")
    paths = [Path(path) / "axe.min.js" for path in (spec.submodule_search_locations or [])] if spec else []
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), None)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("system", THEMES)
def test_an_accessibility_checker_finds_nothing(
    browser: Browser, addresses: list[str], system: Literal["light", "dark"], size: tuple[int, int]
) -> None:
    source = _checker()
    if source is None and not _REQUIRED:
        pytest.skip("no axe-core: pip install 'onnxspec[browser]'")
    browser.size(*size, phone=size == PHONE)
    browser.page.emulate_media(color_scheme=system)
    for address in [*addresses[:3], *addresses[-3:]]:
        browser.open(address)
        browser.js("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        browser.js(f"{source}; 0")
        violations = browser.js(
            "axe.run(document).then((r) => r.violations.map((v) => ({id: v.id, impact: v.impact,"
            " nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' | ' + n.failureSummary)})))"
        )
        assert violations == [], json.dumps(violations, indent=1)


def test_the_search_of_the_site_finds_all_words_and_leads_there_by_keyboard(browser: Browser, site: Path) -> None:
    browser.open(index(site))
    browser.js("document.getElementById('query').focus()")
    for letter in "coupl":
        browser.key(letter)
    assert browser.js("document.getElementById('found').textContent") == "1 page"
    browser.key("Tab")
    assert browser.js("document.activeElement.closest('#hits') !== null")
    browser.js("document.activeElement.click(); 0")
    browser.settle("document.querySelector('.finding:target') !== null")
    assert browser.js("document.querySelector('.finding:target h3').textContent").startswith("input_forget")


def test_what_a_runtime_said_never_runs(browser: Browser, tmp_path: Path) -> None:
    marks = ("<script>window.ran=1</script>", "<img src=x onerror=window.ran=1>", "<svg onload=window.ran=1>")
    text = " ".join(marks) + '"\'><a href="javascript:window.ran=1">x</a>' + HOSTILE
    page = write_report([hostile_run(tmp_path / "run", text)], tmp_path / "report", warn=lambda line: None)
    for address in pages(page.parent):
        browser.open(address)
        assert browser.js("window.ran") is None
        assert browser.complaints == []
        assert len(browser.requests) == 1
    browser.open(index(page.parent))
    choose(browser, "q", "window.ran")
    browser.click("#table tbody a")
    assert "onerror=window.ran=1" in browser.js("document.getElementById('detail').textContent")
    assert browser.js("document.querySelectorAll('img, a[href^=javascript], main script').length") == 0
    assert browser.js("window.ran") is None
    assert browser.complaints == []


def test_twenty_thousand_results_open_in_two_seconds(browser: Browser, tmp_path: Path) -> None:
    rows = sample_results()
    many = [rows[k % len(rows)] | {"case": f"{rows[k % len(rows)]['case']}.{k:06d}"} for k in range(20_000)]
    page = write_report([run_of(tmp_path / "run", many)], tmp_path / "report")
    assert browser.open(page.as_uri()) < 2
    assert shown(browser) == "20,000 results"

    actions = [f"document.querySelector('#table [data-sort={key}]').click()" for key in ("worst", "case")]
    field = "document.querySelector('#filters [name=q]')"
    typed = f"{field}.value = 'clip 0999'; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    for action in (*actions, f"{typed}; await new Promise((done) => setTimeout(done, 130))"):
        milliseconds = browser.js(  # until the effect is drawn
            f"(async () => {{ const start = performance.now(); {action};"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
            " return performance.now() - start; })()"
        )
        assert milliseconds < 1000, action
    assert " of 20,000 results" in shown(browser)
    assert browser.complaints == []
