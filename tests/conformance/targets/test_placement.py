"""Providers of onnxruntime: a node that did not run on the one that is named does not count."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import onnxruntime
import pytest

from onnxspec.conformance.targets.adapters import adapter_source
from onnxspec.conformance.workers.worker import load_adapter

from .small_models import feed, lstm


def adapter() -> dict[str, Any]:
    """Return the globals of onnxruntime's adapter."""
    names: dict[str, Any] = load_adapter(adapter_source("onnxruntime"), {}).describe.__globals__
    return names


@pytest.mark.skipif(
    not hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"), reason="this onnxruntime is older"
)
def test_the_assignment_record_proves_or_refutes() -> None:
    names = adapter()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    raw = onnxruntime.InferenceSession(lstm(), options, providers=["CPUExecutionProvider"])
    nodes = names["Session"](raw).assigned_nodes()
    judge = names["_judge_placement"]
    assert judge("CPUExecutionProvider", nodes, "record") == "record: CPUExecutionProvider: LSTM the_lstm"
    with pytest.raises(names["FellBackError"], match="some node ran on CPUExecutionProvider") as caught:
        judge("CUDAExecutionProvider", nodes, "record")
    assert "LSTM the_lstm" in caught.value.proof


@pytest.mark.parametrize("wanted", ["CPUExecutionProvider", "CUDAExecutionProvider"])
def test_the_profile_proves_or_refutes(wanted: str, tmp_path: Path) -> None:
    names = adapter()
    folder = tmp_path / "profile"
    folder.mkdir()
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "p")
    raw = onnxruntime.InferenceSession(lstm(), options, providers=["CPUExecutionProvider"])
    session = names["ProfiledSession"](raw, wanted, str(folder))
    session.run(feed())
    if wanted == "CPUExecutionProvider":
        session.finish()
        assert "profile: CPUExecutionProvider: LSTM" in session.proof
    else:
        with pytest.raises(names["FellBackError"], match="some node ran on CPUExecutionProvider"):
            session.finish()
    assert not folder.exists()


def test_nodes_around_the_one_under_test_may_be_anywhere() -> None:
    names = adapter()
    judge, fell_back = names["_judge_placement"], names["FellBackError"]
    around = ("Cast", "Neg")
    assert "P: LSTM a" in judge("P", [("C", "Cast", "b"), ("P", "LSTM", "a")], "record", around)
    with pytest.raises(fell_back, match="some node ran on C"):
        judge("P", [("C", "LSTM", "a"), ("P", "Cast", "b")], "record", around)
    with pytest.raises(fell_back, match="nothing shows"):
        judge("P", [("P", "Cast", "b")], "record", around)
    with pytest.raises(fell_back, match="nothing shows"):
        judge("P", [], "profile")
    with pytest.raises(fell_back, match="some node ran on CPUExecutionProvider"):
        judge("P", [("CPUExecutionProvider", "Cast", "b"), ("P", "LSTM", "a")], "record")


@pytest.mark.parametrize("where", ["P", "CPUExecutionProvider"])
def test_an_empty_record_leaves_the_proof_to_the_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """Some providers (onnxruntime-webgpu 1.27) write no record, although the profile shows that they ran the node."""
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps([{"cat": "Node", "name": "n", "args": {"provider": where, "op_name": "LSTM"}}]))
    names = adapter()

    def session_of(model: bytes, options: Any, **more: Any) -> MagicMock:
        session = MagicMock()
        for empty in (session.get_provider_graph_assignment_info, session.get_inputs, session.get_outputs):
            empty.return_value = []
        session.get_providers.return_value = ["P"]
        session.end_profiling.return_value = str(profile) if options.enable_profiling else None
        return session

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["P"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", session_of)
    session = names["Adapter"]({**names["OPTION_DEFAULTS"], "provider": "P"}).prepare(b"a model")
    if where == "P":
        session.finish()
        assert session.proof == "profile: P: LSTM n"
    else:
        with pytest.raises(names["FellBackError"], match="some node ran on CPU"):
            session.finish()


def test_a_digest_in_an_option_is_that_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Caught(Exception):
        pass

    def session(model: bytes, options: Any, providers: Any, enable_fallback: int) -> None:
        seen.append(providers[0][1])
        raise Caught

    names = adapter()
    options = {"provider_options": {"cache_key": "k-{digest}", "device_id": 0, "fast": True}}
    built = names["Adapter"]({**names["OPTION_DEFAULTS"], **options})
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    for model in (b"one", b"two", b"one"):
        with pytest.raises(Caught):
            built._create(model, built._make_session_options())
    assert seen[0] == seen[2] != seen[1]
    assert len(seen[0].pop("cache_key")) == 2 + 64
    assert seen[0] == {"device_id": "0", "fast": "1"}


def test_a_plug_in_is_registered_and_its_device_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    names = adapter()
    devices = [("CPUExecutionProvider", "CPU"), ("Mine", "GPU"), ("Mine", "NPU")]
    runtime = MagicMock(__version__="1.31.0")
    runtime.get_ep_devices.return_value = [MagicMock(ep_name=provider) for provider, _ in devices]
    for device, (_, type) in zip(runtime.get_ep_devices(), devices, strict=True):
        device.device.type.name = type
    monkeypatch.setitem(names, "ort", runtime)
    package = types.ModuleType("bringing_mine")
    package.get_library_path = lambda: "/opt/libmine.so"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bringing_mine", package)
    settings = {"provider_library": "bringing_mine", "provider_library_name": "", "device": "npu"}
    (device,) = names["_plug_in"]("Mine", settings)
    assert device.device.type.name == "NPU"
    (device,) = names["_plug_in"]("Mine", {**settings, "device": "", "provider_library": "lib/m.so"})
    assert device.device.type.name == "GPU"
    registered = [call.args for call in runtime.register_execution_provider_library.call_args_list]
    assert registered == [("Mine", "/opt/libmine.so"), ("Mine", "lib/m.so")]
    with pytest.raises(RuntimeError, match="Mine offers no CPU device here; there is Mine on GPU, Mine on NPU"):
        names["_plug_in"]("Mine", {**settings, "device": "CPU"})
    monkeypatch.setitem(names, "ort", types.SimpleNamespace(__version__="1.19.0"))
    with pytest.raises(RuntimeError, match=r"this onnxruntime 1\.19\.0 has no plug-in providers"):
        names["_plug_in"]("Mine", settings)
