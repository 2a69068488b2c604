"""Signatures of packages: keys, envelopes, and invalid signatures."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.certifying.package import ENVELOPE, write_package
from onnxspec.conformance.certifying.signing import envelope_of, key_id, read_key
from onnxspec.reference.errors import UserError

from ..miniatures import Finished
from .conftest import STATEMENT, Files, attested_files, documented, packed, verified

pytest.importorskip("cryptography", reason="needs onnxspec[sign], which [test] brings")

Inside = Callable[..., Finished]


def key_pair(folder: Path, name: str, kind: str = "ed25519") -> tuple[Path, Path]:
    """Make a new key and return the paths of its private and public files."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    private: Any = ed25519.Ed25519PrivateKey.generate()
    if kind != "ed25519":
        private = ec.generate_private_key(ec.SECP256R1())
    secret, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    plain, pem = serialization.NoEncryption(), serialization.Encoding.PEM
    secret.write_bytes(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    public.write_bytes(private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return secret, public


Keys = dict[str, tuple[Path, Path]]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    return {name: key_pair(folder, name) for name in ("vendor", "stranger")}


@pytest.fixture(scope="module")
def signed_files(certified_run: Path, keys: Keys) -> Files:
    private = read_key(keys["vendor"][0], private=True)
    files = packed(certified_run, signer=key_id(private.public_key()))
    return {**files, ENVELOPE: envelope_of(files[STATEMENT], private)}


def signature(files: Files, path: Path, key: Path | None) -> tuple[str, list[str]]:
    """Return (mark of the check, differences) for the signature of a package."""
    write_package(path, files)
    check = verified(path, signer=read_key(key, private=False) if key is not None else None).checks["signature"]
    return check.mark, check.differs


def test_the_envelope_is_one_of_dsse_about_a_statement_of_in_toto(signed_files: Files, keys: Keys) -> None:
    """The signature covers the pre-authentication encoding; checked without the library that signed."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    envelope = json.loads(signed_files[ENVELOPE])
    assert set(envelope) == {"payload", "payloadType", "signatures"}
    payload = base64.b64decode(envelope["payload"])
    payload_type = envelope["payloadType"].encode()
    assert payload_type == b"application/vnd.in-toto+json"
    encoded = b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)
    public: Any = load_pem_public_key(keys["vendor"][1].read_bytes())
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), encoded)  # raises if it is not a valid signature
    stated = json.loads(payload)
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in stated["subject"]}
    assert digests == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in signed_files.items()
        if name not in (STATEMENT, ENVELOPE)
    }


def other_statement(files: Files) -> Files:
    """Edit a file after signing and update the digests: the envelope is about another statement."""
    return attested_files({**files, "run/run.json": files["run/run.json"] + b" "})


def renamed(files: Files) -> Files:
    """Attribute the signature to somebody else by the key's id, which no signature covers."""
    keyid = json.loads(files[ENVELOPE])["signatures"][0]["keyid"].encode()
    return {**files, ENVELOPE: files[ENVELOPE].replace(keyid, b"ab")}


def garbled(files: Files) -> Files:
    envelope = json.loads(files[ENVELOPE])
    envelope["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    return {**files, ENVELOPE: json.dumps(envelope).encode()}


EDITS: dict[str, Callable[[Files], Files]] = {
    "something edited after it was signed": other_statement,
    "the envelope left out": lambda files: {name: files[name] for name in files.keys() - {ENVELOPE}},
    "an envelope in a package that says that it is unsigned": lambda files: attested_files(files, signer=""),
    "the id of the key that signed": renamed,
    "a signature by nobody": garbled,
    "an envelope without a signature": lambda files: {**files, ENVELOPE: b"{}"},
}


@pytest.mark.parametrize("name", EDITS)
def test_what_is_no_signature_of_the_vendor_is_told(name: str, signed_files: Files, keys: Keys, tmp_path: Path) -> None:
    assert documented("yes")[name] == "signature"
    assert signature(EDITS[name](signed_files), tmp_path / "p.zip", keys["vendor"][1])[1]


def test_a_stranger_who_signs_a_vendors_package_signs_in_his_own_name(
    signed_files: Files, keys: Keys, tmp_path: Path
) -> None:
    secret, public = keys["stranger"]
    key = read_key(secret, private=True)
    files = attested_files(signed_files, signer=key_id(key.public_key()))
    files[ENVELOPE] = envelope_of(files[STATEMENT], key)
    assert signature(files, tmp_path / "p.zip", public) == ("", [])
    assert signature(files, tmp_path / "q.zip", keys["vendor"][1])[1]


def test_what_is_no_key_is_said_in_a_line(tmp_path: Path, keys: Keys) -> None:
    (tmp_path / "text.pem").write_text("hello", encoding="utf-8")
    other, other_public = key_pair(tmp_path, "other", "ec")
    for path, private, reason in (
        (tmp_path / "nowhere.pem", True, "cannot be read"),
        (tmp_path / "text.pem", True, "holds no private key"),
        (tmp_path / "text.pem", False, "holds no public key"),
        (keys["vendor"][1], True, "holds no private key"),
        (keys["vendor"][0], False, "holds no public key"),
        (other, True, "no ed25519 key"),
        (other_public, False, "no ed25519 key"),
    ):
        with pytest.raises(UserError, match=reason) as error:
            read_key(path, private=private)
        assert "\n" not in str(error.value)


def test_certify_signs_and_verify_says_whose_package_it_is(
    inside: Inside, tmp_path: Path, certified_run: Path, certified_files: Files, keys: Keys
) -> None:
    (private, public), (_, stranger) = keys["vendor"], keys["stranger"]
    names = ["--product", "Runtime 2.1", "--vendor", "Example Ltd"]
    done = inside("certify", certified_run, *names, "--key", private, "--out", "signed.zip")
    assert f"signed with the key {key_id(read_key(public, private=False))}" in done.out
    write_package(tmp_path / "unsigned.zip", certified_files)
    for package, options, code, words in (
        ("signed.zip", ["--signer", public], 0, ""),
        ("signed.zip", [], 0, "unchecked"),
        ("signed.zip", ["--signer", stranger], 1, "is not signed by the key"),
        ("signed.zip", ["--signer", private], 2, ""),
        ("unsigned.zip", [], 0, "unsigned"),
        ("unsigned.zip", ["--signer", public], 1, "is unsigned"),
    ):
        checked = inside("verify", package, *options)
        text = " ".join((checked.out + checked.err).split())
        assert (checked.code, words in text) == (code, True), text
        assert ("unsigned" in text) == (package == "unsigned.zip")
    assert inside("certify", certified_run, *names, "--key", public, "--out", "q.zip").code == 2
