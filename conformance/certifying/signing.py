"""Signatures of packages: the statement in a DSSE envelope (Dead Simple Signing Envelope, as in-toto and Sigstore
have it), signed with an ed25519 key. The libraries that do so are an extra, ``onnxspec[sign]``."""

from __future__ import annotations

import base64
import hashlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from ...reference.errors import UserError
from ..border.strict_json import MalformedJson, decode, encode
from .package import ENVELOPE, STATEMENT, Package
from .records import EnvelopeRecord

PAYLOAD = "application/vnd.in-toto+json"
"""The type of a payload that is a Statement of in-toto's."""

_LARGEST = 1 << 16  # bytes of a file that holds a key


@dataclass(frozen=True)
class PublicKey:
    """Somebody's ed25519 key; ``fingerprint`` is the SHA-256 of its SubjectPublicKeyInfo, as openssl has it in DER."""

    fingerprint: str
    key: Any = field(repr=False)


@dataclass(frozen=True)
class Signer:
    """A private key."""

    public: PublicKey
    private: Any = field(repr=False)

    def envelope(self, payload: bytes) -> bytes:
        """STATEMENT.intoto.jsonl: a statement, signed."""
        made = _libraries().dsse.Envelope(payload, PAYLOAD, {})
        made.sign(_libraries().keys.CryptoSigner(self.private, self.public.key))
        return encode(msgspec.convert(made.to_dict(), EnvelopeRecord)).encode("ascii") + b"\n"


def signer_in(path: Path) -> Signer:
    """Return the signer of a file in PEM. Raise UserError."""
    private = _loaded(path, "private key", partial(_libraries().serialization.load_pem_private_key, password=None))
    return Signer(_public(private.public_key()), private)


def public_key_in(path: Path) -> PublicKey:
    """Return the public key of a file in PEM. Raise UserError."""
    return _public(_loaded(path, "public key", _libraries().serialization.load_pem_public_key))


def signature_differences(package: Package, signer: str, key: PublicKey | None) -> Iterator[str]:
    """Return complaints about the signature of a package, a line each.

    signer
        SHA-256 of the key in its statement; empty if it says that it is unsigned.
    key
        That of the expected signer; None if unknown.
    """
    if ENVELOPE not in package.names:
        if signer:
            yield f"{ENVELOPE}: is missing, and {STATEMENT} says that the key {signer[:16]} signs it"
        elif key is not None:
            yield f"is unsigned: the key {key.fingerprint[:16]} does not answer for it"
        return
    try:
        envelope = decode(package.content(ENVELOPE), EnvelopeRecord)
        payload = base64.b64decode(envelope.payload, validate=True)
    except (MalformedJson, ValueError) as error:
        yield f"{ENVELOPE}: cannot be read: {error}"
        return
    if envelope.payload_type != PAYLOAD or payload != package.content(STATEMENT):
        yield f"{ENVELOPE}: signs something else than {STATEMENT}"
    elif [signature.keyid for signature in envelope.signatures] != [signer] or not signer:
        yield f"{ENVELOPE}: is signed by another key than {STATEMENT} says ({signer[:16] or 'none'})"
    elif key is not None and not _holds(envelope, key):
        yield f"{ENVELOPE}: is not signed by the key {key.fingerprint[:16]}"


def _holds(envelope: EnvelopeRecord, public: PublicKey) -> bool:
    """Tell whether an envelope is signed with a key."""
    try:
        _libraries().dsse.Envelope.from_dict(msgspec.to_builtins(envelope)).verify([public.key], 1)
    except _libraries().refusals:
        return False
    return True


def _public(public: Any) -> PublicKey:
    serialization = _libraries().serialization
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    fingerprint = hashlib.sha256(public.public_bytes(serialization.Encoding.DER, form)).hexdigest()
    return PublicKey(fingerprint, _libraries().keys.SSlibKey.from_crypto(public, keyid=fingerprint))


def _loaded(path: Path, kind: str, load: Callable[[bytes], Any]) -> Any:
    """Return the ed25519 key of a file. Raise UserError."""
    try:
        with path.open("rb") as file:
            key = load(file.read(_LARGEST))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except TypeError:
        raise UserError(f"{path}: is encrypted: openssl pkey -in {path} -out PLAIN.pem decrypts it") from None
    except _libraries().refusals:
        raise UserError(f"{path}: holds no {kind} in PEM") from None
    wanted = _libraries().ed25519
    if not isinstance(key, (wanted.Ed25519PrivateKey, wanted.Ed25519PublicKey)):
        raise UserError(f"{path}: is no ed25519 key: openssl genpkey -algorithm ed25519 -out KEY.pem makes one")
    return key


@cache
def _libraries() -> SimpleNamespace:
    """Return the libraries that signatures need. Raise UserError if they are not installed."""
    try:
        malformed = importlib.import_module("securesystemslib.exceptions").Error
        unsupported = importlib.import_module("cryptography.exceptions").UnsupportedAlgorithm
        return SimpleNamespace(
            dsse=importlib.import_module("securesystemslib.dsse"),
            keys=importlib.import_module("securesystemslib.signer"),
            serialization=importlib.import_module("cryptography.hazmat.primitives.serialization"),
            ed25519=importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519"),
            refusals=(ValueError, KeyError, malformed, unsupported),
        )
    except ImportError:
        raise UserError("signatures need two libraries: pip install 'onnxspec[sign]'") from None
