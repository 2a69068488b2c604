"""Signatures of packages: the statement in a DSSE envelope, signed with an ed25519 key.

DSSE (Dead Simple Signing Envelope) is the format of in-toto and Sigstore. The library for keys is an extra,
``onnxspec[sign]``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...reference.errors import UserError
from ..border.strict_json import MalformedJson, decode, encode
from .package import ENVELOPE, STATEMENT, Package
from .records import EnvelopeRecord, SignatureRecord

PAYLOAD = "application/vnd.in-toto+json"
"""The type of a payload that is an in-toto Statement."""

_LARGEST = 1 << 16  # maximum bytes of a key file


@dataclass(frozen=True)
class PublicKey:
    """An ed25519 public key; ``fingerprint`` is the SHA-256 of its SubjectPublicKeyInfo in DER."""

    fingerprint: str
    key: Any = field(repr=False)


@dataclass(frozen=True)
class Signer:
    """A private key."""

    public: PublicKey
    private: Any = field(repr=False)

    def envelope(self, payload: bytes) -> bytes:
        """Return STATEMENT.intoto.jsonl: a signed statement."""
        signature = base64.b64encode(self.private.sign(_authenticated(payload))).decode("ascii")
        signatures = (SignatureRecord(sig=signature, keyid=self.public.fingerprint),)
        encoded = base64.b64encode(payload).decode("ascii")
        record = EnvelopeRecord(payload=encoded, payload_type=PAYLOAD, signatures=signatures)
        return encode(record).encode("ascii") + b"\n"


def signer_in(path: Path) -> Signer:
    """Return the signer of a PEM file. Raise UserError."""
    serialization, ed25519 = _libraries()
    load = partial(serialization.load_pem_private_key, password=None)
    private = _loaded(path, "private key", load, ed25519.Ed25519PrivateKey)
    return Signer(_public(private.public_key()), private)


def public_key_in(path: Path) -> PublicKey:
    """Return the public key of a PEM file. Raise UserError."""
    serialization, ed25519 = _libraries()
    return _public(_loaded(path, "public key", serialization.load_pem_public_key, ed25519.Ed25519PublicKey))


def signature_differences(package: Package, signer: str, key: PublicKey | None) -> Iterator[str]:
    """Yield errors of the signature of a package, a line each.

    signer
        SHA-256 of the key in its statement; empty if the statement calls it unsigned.
    key
        The key of the expected signer; None if unknown.
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
    elif key is not None and not _holds(envelope, payload, key):
        yield f"{ENVELOPE}: is not signed by the key {key.fingerprint[:16]}"


def _authenticated(payload: bytes) -> bytes:
    """Return the signed bytes: DSSE's pre-authentication encoding of a statement."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD), PAYLOAD.encode("ascii"), len(payload), payload)


def _holds(envelope: EnvelopeRecord, payload: bytes, public: PublicKey) -> bool:
    """Return whether an envelope is signed with a key."""
    from cryptography.exceptions import InvalidSignature

    try:
        public.key.verify(base64.b64decode(envelope.signatures[0].sig, validate=True), _authenticated(payload))
    except (InvalidSignature, ValueError):
        return False
    return True


def _public(public: Any) -> PublicKey:
    serialization, _ = _libraries()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return PublicKey(hashlib.sha256(public.public_bytes(serialization.Encoding.DER, form)).hexdigest(), public)


def _loaded(path: Path, kind: str, load: Callable[[bytes], Any], wanted: type) -> Any:
    """Return the ed25519 key of a file. Raise UserError."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with path.open("rb") as file:
            key = load(file.read(_LARGEST))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except TypeError:
        raise UserError(f"{path}: is encrypted: openssl pkey -in {path} -out PLAIN.pem decrypts it") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UserError(f"{path}: holds no {kind} in PEM") from None
    if not isinstance(key, wanted):
        raise UserError(f"{path}: is no ed25519 key: openssl genpkey -algorithm ed25519 -out KEY.pem makes one")
    return key


def _libraries() -> tuple[Any, Any]:
    """Return the modules for keys in PEM and for ed25519. Raise UserError if they are not installed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise UserError("signatures need a library: pip install 'onnxspec[sign]'") from None
    return serialization, ed25519
