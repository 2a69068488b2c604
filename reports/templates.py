"""Templates of pages, Markdown and terminal text, with their filters and globals."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ..conformance.judging.divergence import ratio_text
from ..conformance.judging.vocabulary import STATES, STATUS_WORDS, word
from ..conformance.text import plural
from ..reference import document_saying
from .comparison import KINDS
from .evidence import BANDS, by_row, by_unit, first_values, range_text, shape_text, short
from .finding_page import MOST_LISTED, MOST_PAGES, times_words
from .findings import Clause, refusals_of
from .matrix import STATE_TONES, tone_of
from .text import code, plain, printable, shortened


def html_of(name: str, *styles: str, scripts: Sequence[str] = (), **content: Any) -> str:
    """Return a page of a template, with scripts and styles inside. Styles are page.css and ``styles``."""
    style, sources = "".join(map(_asset, ("page.css", *styles))), [_asset(script) for script in scripts]
    scripts_inside, policy = [Markup(source) for source in sources], _policy(style, sources)
    template = _environment(shortened).get_template(name)
    return template.render(style=Markup(style), scripts=scripts_inside, policy=policy, **content)


def markdown_of(name: str, **content: Any) -> str:
    """Return a Markdown page of a template; inserted text can neither format nor link."""
    return _environment(_markdown).get_template(name).render(**content).rstrip() + "\n"


def text_of(name: str, **content: Any) -> str:
    """Return a Markdown page of a template for a terminal: without hidden characters, nothing escaped."""
    return _environment(_text).get_template(name).render(**content).rstrip() + "\n"


def _markdown(text: str) -> Markup:
    return Markup(plain(text))


def _fenced(text: str) -> Markup:
    """Return the text without sequences that would end its Markdown fence."""
    return Markup(printable(text).replace("```", "` ` `"))


def _text(text: str) -> Markup:
    return Markup(printable(text))


@cache
def _environment(escape: Callable[[str], str]) -> Environment:
    """Return the templates of the folder assets; ``escape`` is applied to each inserted text."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=lambda value: escape(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": lambda n: f"{n:,}",
        "ratio": lambda value: "" if value is None else f"{value:.3g}",
        "plural": plural,
        "urlencode": lambda text: quote(shortened(text)),
        "real": short,
        "by_unit": by_unit,
        "by_row": by_row,
        "shape": shape_text,
        "first_values": first_values,
        "range": range_text,
        "ratio_text": ratio_text,
        "times_words": times_words,
        "documents": _documents,
        "basename": lambda path: path.rpartition("/")[2],
        "code": (lambda text: text) if escape is _text else (lambda text: Markup(code(text))),
        "line": lambda text: Markup(" ".join(_fenced(text).split())),
        "fenced": _fenced,
    }
    environment.globals |= {
        "word": word,
        "refusals_of": refusals_of,
        "BANDS": BANDS,
        "STATUS": STATUS_WORDS,
        "STATES": STATES,
        "tone_of": tone_of,
        "STATE_TONES": STATE_TONES,
        "MOST_LISTED": MOST_LISTED,
        "MOST_PAGES": MOST_PAGES,
        "KINDS": KINDS,
    }
    return environment


def _documents(clauses: Sequence[Clause]) -> list[tuple[str, str]]:
    """Return (operator, address) of the clauses' documents that have an address."""
    documents = dict.fromkeys(document_saying(clause.id) for clause in clauses)
    return [(document.title, document.page) for document in documents if document is not None and document.page]


def _asset(name: str) -> str:
    """Return the text of a file of the folder assets."""
    return files(__package__ or __name__).joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return the page's content security policy: it allows only this style and these scripts, by their hashes."""
    allowed = " ".join(map(_digest, scripts)) or "'none'"
    sources = f"style-src {_digest(style)}; script-src {allowed}; img-src data:"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
