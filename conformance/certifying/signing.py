"""Signatures of packages: the statement in a DSSE envelope, signed with an ed25519 key.

DSSE (Dead Simple Signing Envelope) is the format of in-toto and Sigstore. The library for keys is an extra,
``onnxspec[sign]``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...reference.errors import UserError
from ..border.strict_json import MalformedJson, decode, encode
from .package import ENVELOPE, STATEMENT, Package
from .records import EnvelopeRecord, SignatureRecord

PAYLOAD = "application/vnd.in-toto+json"
"""The type of a payload that is an in-toto Statement."""

_LARGEST = 1 << 16  # maximum bytes of a key file


def read_key(path: Path, *, private: bool) -> Any:
    """Return the ed25519 key of a PEM file. Raise UserError."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise UserError("signatures need a library: pip install 'onnxspec[sign]'") from None
    key: Any
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST)
        if private:
            key = serialization.load_pem_private_key(content, password=None)
        else:
            key = serialization.load_pem_public_key(content)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except TypeError:
        raise UserError(f"{path}: is encrypted: openssl pkey -in {path} -out PLAIN.pem decrypts it") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UserError(f"{path}: holds no {'private' if private else 'public'} key in PEM") from None
    if not isinstance(key, (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey)):
        raise UserError(f"{path}: is no ed25519 key: openssl genpkey -algorithm ed25519 -out KEY.pem makes one")
    return key


def key_id(public: Any) -> str:
    """Return the SHA-256 of a public key's SubjectPublicKeyInfo in DER."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def envelope_of(payload: bytes, private: Any) -> bytes:
    """Return STATEMENT.intoto.jsonl: a signed statement."""
    signature = base64.b64encode(private.sign(_authenticated(payload))).decode("ascii")
    signatures = (SignatureRecord(sig=signature, keyid=key_id(private.public_key())),)
    encoded = base64.b64encode(payload).decode("ascii")
    record = EnvelopeRecord(payload=encoded, payload_type=PAYLOAD, signatures=signatures)
    return encode(record).encode("ascii") + b"\n"


def signature_differences(package: Package, signer: str, public: Any) -> Iterator[str]:
    """Yield errors of the signature of a package, a line each.

    signer
        SHA-256 of the key in its statement; empty if the statement calls it unsigned.
    public
        The key of the expected signer; None if unknown.
    """
    if ENVELOPE not in package.names:
        if signer:
            yield f"{ENVELOPE}: is missing, and {STATEMENT} says that the key {signer[:16]} signs it"
        elif public is not None:
            yield f"is unsigned: the key {key_id(public)[:16]} does not answer for it"
        return
    try:
        envelope = decode(package.content(ENVELOPE), EnvelopeRecord)
        payload = base64.b64decode(envelope.payload, validate=True)
    except (MalformedJson, ValueError) as error:
        yield f"{ENVELOPE}: cannot be read: {error}"
        return
    if envelope.payload_type != PAYLOAD or payload != package.content(STATEMENT):
        yield f"{ENVELOPE}: signs something other than {STATEMENT}"
    elif [signature.keyid for signature in envelope.signatures] != [signer] or not signer:
        yield f"{ENVELOPE}: is signed by another key than {STATEMENT} says ({signer[:16] or 'none'})"
    elif public is not None and not _holds(envelope, payload, public):
        yield f"{ENVELOPE}: is not signed by the key {key_id(public)[:16]}"


def _authenticated(payload: bytes) -> bytes:
    """Return the signed bytes: DSSE's pre-authentication encoding of a statement."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD), PAYLOAD.encode("ascii"), len(payload), payload)


def _holds(envelope: EnvelopeRecord, payload: bytes, public: Any) -> bool:
    """Return whether an envelope is signed with a key."""
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(base64.b64decode(envelope.signatures[0].sig, validate=True), _authenticated(payload))
    except (InvalidSignature, ValueError):
        return False
    return True
