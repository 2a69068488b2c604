"""A run whose shards are tasks of a cluster. Their folders come back packed, and are merged.

The run's folder keeps the finished shards until all are back, so an interrupted run can be resumed.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...reference.errors import RecordError, UserError
from ..probes.selection import Selection
from ..results.folder import RESULTS, RUN, read_folder
from ..results.writer import RunWriter
from ..running.engine import execute
from ..running.merge import merge
from ..running.planning import planned
from ..running.run import Plan, Run
from ..targets.target import Target
from .connection import Cluster, ClusterError

SHARDS = "shards"
"""The folder of finished shards, inside the run's folder."""

_CASES = 128
"""Cases of a shard: enough to make the start of the runtime cheap in comparison."""

_PLAN = "plan.txt"


@dataclass(frozen=True)
class ShardTask:
    """A shard for a worker.

    settings
        Further fields of its plan.
    files
        Names and texts of local files that the target needs: its adapter, its list of known failures.
    """

    shard: str
    selection: Selection
    target: Target
    settings: Mapping[str, Any]
    files: tuple[tuple[str, str], ...]


def run_shards(
    plan: Plan,
    folder: Path,
    cluster: Cluster,
    *,
    resume: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Run:
    """Run a plan with one target on a cluster, and merge its shards in `folder`. A resumed run keeps finished shards.

    report
        Called with a line for each shard that comes back.

    Raise UserError for a plan that has no shards, RecordError for a folder with another run,
    ClusterError where the cluster cannot run it, and OSError.
    """
    tasks = list(_tasks(plan))
    parts = _folder_of_shards(folder, tasks[0], resume)
    folders = {task.shard: parts / task.shard.replace("/", "-of-") for task in tasks}
    remaining = [task for task in tasks if not _is_done(folders[task.shard])]
    results = cluster.results(run_shard, remaining, plan.targets[0].name)
    for count, (task, packed) in enumerate(results, len(tasks) - len(remaining) + 1):
        _unpack(packed, folders[task.shard])
        report(f"{count} of {len(tasks)} shards are back")
    merged = folder / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    run = merge(list(folders.values()), merged, command=plan.command)
    for path in merged.iterdir():
        path.replace(folder / path.name)
    merged.rmdir()
    shutil.rmtree(parts)
    run.folder = folder
    run.plan = replace(
        run.plan, require=plan.require, require_special=plan.require_special, excuses=plan.excuses, targets=plan.targets
    )
    return run


def _tasks(plan: Plan) -> Iterator[ShardTask]:
    if plan.shard is not None or len(plan.targets) != 1:
        raise UserError("--scheduler runs one whole run of one target: leave --shard out, and run others by themselves")
    (target,) = plan.targets
    names = [*([target.adapter] if target.adapter.endswith(".py") else []), *filter(None, [target.expected])]
    files = tuple((name, Path(name).read_text(encoding="utf-8")) for name in names)
    settings = {name: getattr(plan, name) for name in ("command", "expected", "record", "shrinks")}
    count = -(-len(plan.probes_of(target)) // _CASES)
    for number in range(1, count + 1):
        yield ShardTask(f"{number}/{count}", plan.selection, target, settings, files)


def _folder_of_shards(folder: Path, task: ShardTask, resume: bool) -> Path:
    """Return the folder for shards. Raise RecordError where it belongs to another run."""
    parts = folder / SHARDS
    description = repr(replace(task, settings={**task.settings, "command": ()}))
    if (folder / RESULTS).exists():
        raise RecordError(f"{folder} already holds a run: go on without --scheduler, or name another folder")
    if (parts / _PLAN).exists():
        if not resume:
            raise RecordError(f"{folder} holds shards of a run: go on with --resume, or name another folder")
        if (parts / _PLAN).read_text(encoding="utf-8") != description:
            raise RecordError(f"{folder} holds shards of another run: go on with its options, or name another folder")
    parts.mkdir(parents=True, exist_ok=True)
    (parts / _PLAN).write_text(description, encoding="utf-8")
    return parts


def _is_done(folder: Path) -> bool:
    if not (folder / RUN).exists():
        return False
    info = read_folder(folder).described
    return bool(info["complete"]) and not any(target["unavailable"] for target in info["targets"])


def _unpack(packed: bytes, folder: Path) -> None:
    """Write the folder of a shard; it gets its name only when it is complete."""
    unfinished = folder.with_name(f"{folder.name}.new")
    for path in (unfinished, folder):
        shutil.rmtree(path, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(unfinished)
    unfinished.rename(folder)


def run_shard(task: ShardTask) -> bytes:
    """Run a shard in a worker of the cluster, and return its folder as a ZIP archive. Raise ClusterError."""
    with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
        scratch, target = Path(temporary), task.target
        original = {}
        for number, (name, text) in enumerate(task.files):
            copy = scratch / f"{number}-{Path(name).name}"
            copy.write_text(text, encoding="utf-8")
            original[json.dumps(str(copy)).encode()] = json.dumps(name).encode()
            is_adapter = name == target.adapter
            target = replace(target, adapter=str(copy)) if is_adapter else replace(target, expected=str(copy))
        try:
            plan = replace(planned(task.selection, [target], shard=task.shard), **task.settings)
            with RunWriter(scratch / "run") as writer:
                execute(plan, writer)
        except (ValueError, UserError, OSError) as error:
            raise ClusterError(f"shard {task.shard} cannot be run on a worker: {error}") from None
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(writer.folder.rglob("*")):
                if path.is_file():
                    content = path.read_bytes()
                    if path.name in (RESULTS, RUN):  # they name the files of the machine that started the run
                        for copied, name_there in original.items():
                            content = content.replace(copied, name_there)
                    archive.writestr(str(path.relative_to(writer.folder)), content)
        return packed.getvalue()
