"""Documents of operators: their versions, and the files of their clauses.

Those of ONNX come from the schemas that ``onnx`` registers; an operator of another domain brings its own versions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import onnx
import onnx.defs
import onnx.helper
from msgspec import Struct

from ..numbers.accuracy import FORMATS
from .interpretations import QUESTIONS, Default, Question, ask, corrected
from .tensors import HIDDEN_SIZE, LENGTHS, SEQ_LENGTH, Extent, TensorForm


class UnknownOperator(ValueError):
    """Unknown operator, or unknown version of it."""


class Needed(Struct, frozen=True):
    """The condition under which an optional input must be there: an attribute has one of these values.

    refused
        Whether the input is forbidden where the attribute has another value.
    """

    attribute: str
    values: tuple[str, ...]
    refused: bool = True


class NodeRules(Struct, frozen=True):
    """What a document says of a node beyond names, types and shapes.

    choices
        By attribute, a STRING or an INT, the values that it may have.
    needed
        By optional input when it must be there.
    sizes
        By size the attribute that says it.
    layout
        The attribute that selects the second shape of tensors (``batch_first``) if it is 1.
    default_only
        Attributes of which only the default is judged.
    """

    choices: Mapping[str, tuple[str | int, ...]] = {}
    needed: Mapping[str, Needed] = {}
    sizes: Mapping[str, str] = {}
    layout: str = "layout"
    default_only: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OperatorVersion:
    """Operator version: (domain, op_type, since_version), with its definitions.

    attributes
        Name to kind: ``INT``, ``FLOAT``, ``FLOATS``, ``STRING`` or ``STRINGS``.
    defaults
        Name to value, for attributes that have one: the schema's value, with errata corrected.
    inputs, outputs
        Formal names in order; ``required`` has the required inputs, ``required_outputs`` the required outputs.
    types
        NumPy's names of the types of T.
    kinds
        The same for every other type parameter.
    tensors
        Description of each input and output, by name.
    rules
        Rules on nodes beyond names, types and shapes.
    """

    domain: str
    op_type: str
    since_version: int
    attributes: Mapping[str, str] = field(hash=False)
    defaults: Mapping[str, Default] = field(hash=False)
    inputs: tuple[str, ...]
    required: frozenset[str]
    outputs: tuple[str, ...]
    required_outputs: frozenset[str]
    types: tuple[str, ...]
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {LENGTHS: ("int32",)}, hash=False)
    tensors: Mapping[str, TensorForm] = field(default_factory=dict, hash=False)
    rules: NodeRules = field(default=NodeRules(), hash=False)

    def types_of(self, input: str) -> tuple[str, ...]:
        """Return the types that an input may have."""
        kind = self.kind_of(input)
        return self.types if kind == "T" else self.kinds[kind]

    def kind_of(self, input: str) -> str:
        """Return the type parameter of a tensor: inputs of one kind have one type."""
        form = self.tensors.get(input)
        return "T" if form is None else form.kind

    @property
    def name(self) -> str:
        """``LSTM-14``; with its domain in front where that is not ONNX's own."""
        prefix = f"{self.domain}::" if self.domain else ""
        return f"{prefix}{self.op_type}-{self.since_version}"

    def unjudged(self, chosen: Callable[[str], Any]) -> str:
        """Return why a node is not judged, of which `chosen` gives the values of attributes; empty if it is."""
        others = (name for name in sorted(self.rules.default_only) if chosen(name) not in (None, self.defaults[name]))
        return next((f"{name} {chosen(name)!r}: only {self.defaults[name]!r} is judged here" for name in others), "")

    @property
    def known_as(self) -> str:
        """The name by which results, options and cases call its operator: see :attr:`Document.name`."""
        return document_of(self.op_type, self.domain).name

    @property
    def sequence(self) -> str:
        """The input that has an element for each step: of recurrent operators X."""
        forms = ((name, self.tensors.get(name)) for name in self.inputs)
        steps = (name for name, form in forms if form is not None and Extent(SEQ_LENGTH) in form.shapes[0])
        return next(steps, self.inputs[0])

    @property
    def gates(self) -> int:
        """Number of gate blocks in the weights of a recurrent operator, from the description of W."""
        return max(extent.times for extent in self.tensors["W"].shapes[0] if extent.size == HIDDEN_SIZE)

    @property
    def last_opset(self) -> int:
        """The last opset before the operator's next version. For the newest version its own opset, so that later opsets
        of onnx do not change models."""
        later = [v for v in versions_of(self.op_type, self.domain) if v > self.since_version]
        return later[0] - 1 if later else self.since_version


@dataclass(frozen=True)
class Document:
    """Document of one operator.

    versions
        Every version by its since_version, ascending; None if ``onnx`` has their schemas.
    clauses
        The file of its clause table.
    former
        Domain and name of the same operator in older models, with the same versions.
    questions
        Its open questions, as far as the reference can compute both ways.
    tensors
        Its inputs and outputs over all versions, if ``onnx`` has the schemas: those have no shapes.
    rules
        Its rules on nodes over all versions, likewise.
    """

    op_type: str
    domain: str
    clauses: Path
    versions: Mapping[int, OperatorVersion] | None = field(default=None, hash=False)
    former: tuple[tuple[str, str], ...] = ()
    questions: tuple[Question, ...] = ()
    tensors: Mapping[str, TensorForm] = field(default_factory=dict, hash=False)
    rules: NodeRules = field(default=NodeRules(), hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Domain and name."""
        return self.domain, self.op_type

    @property
    def name(self) -> str:
        """The name by which results, options and cases call it: the name alone, with the domain in front where an
        operator that was known before has that name."""
        return _NAMES[self.key]

    @property
    def prefix(self) -> str:
        """The beginning of the ids of its clauses, faults and cases."""
        return prefix_of(self.name)

    @property
    def title(self) -> str:
        """``GRU``; with its domain in front where that is not ONNX's own."""
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type

    @property
    def page(self) -> str:
        """The address at which everybody can read it; empty where there is none."""
        return _PAGES.get(self.domain, "").format(self.op_type)


_BEYOND = 1 << 16
"""A number that no version of an operator reaches."""

_PAGES = {"": "https://onnx.ai/onnx/operators/onnx__{}.html"}
"""The addresses where the documents of a domain are published, the operator's name in the place of the braces."""

MISSING: dict[str, str] = {}
"""Operators of ONNX's that are not known since the installed ``onnx`` has no schema of theirs: by name a sentence."""

_KEYS: dict[str, tuple[str, str]] = {}
"""Domain and op_type of each known operator, by its name."""

_NAMES: dict[tuple[str, str], str] = {}
_DOCUMENTS: dict[str, Document] = {}
_AWAITED: dict[str, _Awaited] = {}


class _Awaited(NamedTuple):
    """An operator whose document is not loaded: its versions as in the document, and the function that declares it."""

    versions: tuple[int, ...] | None
    load: Callable[[], object]


def await_document(key: tuple[str, str], versions: tuple[int, ...] | None, load: Callable[[], object]) -> None:
    """Make an operator known. `load` declares its document when that is first asked for.

    versions
        Every since_version of the document; None if ``onnx`` has the schemas.
    """
    _AWAITED[_enter(*key)] = _Awaited(versions, load)


def declare(document: Document) -> Document:
    """Make an operator known; once is enough. Raises ValueError where its domain has another one of that name: small
    and large letters are alike."""
    name = _NAMES.get(document.key) or _enter(*document.key)
    if name in _AWAITED:
        _AWAITED[name].load()  # another document has the name, or this is its module, and nothing happens
    if _DOCUMENTS.setdefault(name, document) != document:
        raise ValueError(f"{document.title}: the name is that of {_DOCUMENTS[name].title}")
    _AWAITED.pop(name, None)
    ask(document.questions)
    return document


def _enter(domain: str, op_type: str) -> str:
    """Return the name of a new operator. Raise ValueError where its domain has one of that name."""
    title = f"{domain}::{op_type}" if domain else op_type
    taken = {(other, known.lower()): name for (other, known), name in _NAMES.items()}
    if (domain, op_type.lower()) in taken:
        raise ValueError(f"{title}: the name is that of {document_of(taken[domain, op_type.lower()]).title}")
    name = title if op_type.lower() in {known for _, known in taken} else op_type
    _KEYS[name], _NAMES[domain, op_type] = (domain, op_type), name
    return name


def load_documents() -> None:
    """Load the documents of all known operators."""
    for name in operator_names():
        document_of(name)


QUESTIONS.await_documents(load_documents)


def has_schema(op_type: str) -> bool:
    """Return whether the installed ``onnx`` has the schema of an operator of its own; else it goes to MISSING."""
    if onnx.defs.has(op_type, ""):
        return True
    MISSING[op_type] = f"onnx {onnx.__version__} has no schema of {op_type}: install a newer one"
    return False


def operator_names(domain: str | None = None) -> tuple[str, ...]:
    """Return the names of known operators, or those of one domain, in the order of their declaration."""
    return tuple(name for name, (other, _) in _KEYS.items() if domain in (None, other))


def prefix_of(name: str) -> str:
    """Return the beginning of the ids of an operator's clauses, faults and cases."""
    return name.lower().replace("::", ".")


def document_of(op_type: str, domain: str = "") -> Document:
    """Return the document of an operator, by its name with or without domain. Raise UnknownOperator."""
    name = _name_of(op_type, domain)
    if name not in _DOCUMENTS:
        _AWAITED[name].load()
    return _DOCUMENTS[name]


def _name_of(op_type: str, domain: str) -> str:
    """Return the name of a known operator, by its name with or without domain. Raise UnknownOperator."""
    for name in (op_type, f"{domain}::{op_type}"):
        if name in _KEYS and domain in ("", _KEYS[name][0]):
            return name
    if op_type in MISSING:
        raise UnknownOperator(MISSING[op_type])
    names = ", ".join(f"{other}::{name}" if other else name for other, name in _NAMES)
    raise UnknownOperator(f"no operator {op_type!r} in domain {domain!r}; there are: {names}")


def operator_called(text: str) -> str:
    """Return the name of an operator that is given with its domain; other text unchanged."""
    domain, _, op_type = text.rpartition("::")
    return _NAMES.get((domain, op_type), text)


def forget(op_type: str) -> None:
    """Make an operator unknown again: one of which nothing has been worked out so far."""
    document = _DOCUMENTS.pop(op_type)
    del _NAMES[document.key], _KEYS[op_type]
    for cached in (versions_of, operator_version):
        cached.cache_clear()


def document_meant(op_type: str, domain: str) -> Document:
    """Return the document of a node's operator, also by its former name. Raise UnknownOperator."""
    if (domain, op_type) in _NAMES:
        return document_of(_NAMES[domain, op_type])
    for document in map(document_of, operator_names()):
        if (domain, op_type) in document.former:
            return document
    title = f"{domain}::{op_type}" if domain else op_type
    raise UnknownOperator(f"{title} is no operator that is judged here: {', '.join(operator_names())}")


@cache
def versions_of(op_type: str, domain: str = "") -> tuple[int, ...]:
    """Return every since_version of an operator, ascending, with or without its domain in the name.

    Raise UnknownOperator.
    """
    name = _name_of(op_type, domain)
    own = _AWAITED[name].versions if name in _AWAITED else _DOCUMENTS[name].versions
    if own is not None:
        return tuple(sorted(own))
    domain, known = _KEYS[name]
    versions: list[int] = []
    with contextlib.suppress(onnx.defs.SchemaError):  # there is none before the first
        while True:  # one by one, newest first: to have all schemas of all operators made takes far longer
            before = versions[-1] if versions else _BEYOND
            versions.append(onnx.defs.get_schema(known, before - 1, domain).since_version)
    return tuple(reversed(versions))


def version_in_opset(document: Document, opset: int) -> OperatorVersion | None:
    """Return the version of an operator in an opset of its domain; None if that opset has none."""
    meant = [version for version in versions_of(document.name) if version <= opset]
    return operator_version(document.name, meant[-1]) if meant else None


@cache
def operator_version(op_type: str, since_version: int, domain: str = "") -> OperatorVersion:
    """Return one version of an operator. Raise UnknownOperator if it has no version of exactly that since_version."""
    known = versions_of(op_type, domain)
    if since_version not in known:
        raise UnknownOperator(f"no {op_type}-{since_version}; versions are {', '.join(map(str, known))}")
    own = document_of(op_type, domain).versions
    if own is not None:
        return own[since_version]
    schema = onnx.defs.get_schema(op_type, since_version, domain)
    names = {FORMATS[n].onnx_type: n for n in FORMATS}
    strings = {"tensor(float16)": 10, "tensor(bfloat16)": 16, "tensor(float)": 1, "tensor(double)": 11}
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    named = {each.name: each.type_str for each in (*schema.inputs, *schema.outputs)}
    document = document_of(op_type, domain)

    def types_of(kind: str) -> tuple[str, ...]:
        numbers = {strings.get(text) for text in allowed[kind]}
        return tuple(name for onnx_type, name in names.items() if onnx_type in numbers)

    return OperatorVersion(
        domain=domain,
        op_type=op_type,
        since_version=since_version,
        attributes=MappingProxyType({n: str(a.type).rpartition(".")[2] for n, a in schema.attributes.items()}),
        defaults=MappingProxyType(_defaults(schema)),
        inputs=tuple(i.name for i in schema.inputs),
        required=frozenset(i.name for i in schema.inputs if i.option != optional),
        outputs=tuple(o.name for o in schema.outputs),
        required_outputs=frozenset(o.name for o in schema.outputs if o.option != optional),
        types=types_of("T"),
        kinds=MappingProxyType({k: ("int32",) if k == LENGTHS else types_of(k) for k in allowed if k != "T"}),
        tensors=MappingProxyType(
            {name: replace(form, kind=named[name]) for name, form in document.tensors.items() if name in named}
        ),
        rules=document.rules,
    )


def _defaults(schema: onnx.defs.OpSchema) -> dict[str, Default]:
    """Return the default values of a schema's attributes, with errata corrected."""
    defaults = {}
    for name, attribute in schema.attributes.items():
        given = attribute.default_value
        registered = _plain(onnx.helper.get_attribute_value(given) if given.type else None)
        if registered is not None:
            value = corrected(schema.name, schema.since_version, name, registered)
            if value is not None:
                defaults[name] = value
    return defaults


def _plain(value: Any) -> Default | None:
    """Return an attribute's value as a Python value; None if it is empty."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if value is None or isinstance(value, (int, float)):
        return value
    return tuple(v.decode("utf-8") for v in value) or None
