"""Worker: the single file that runs in a target's process.

It needs only the standard library, NumPy, the runtime itself, and Python 3.8. So any interpreter can run it, also on
another machine or in a container without onnxspec: ``INTERPRETER worker.py``, or its source over ``python -c``.

It exchanges frames on its standard input and output. A frame is a fixed prefix (magic, header length, body length,
little-endian), a JSON header and a body of raw array buffers; the header's ``arrays`` lists element type and shape of
each buffer, in order. bfloat16 is sent under that name as 16 raw bits. The conversation:

=============  =================================================================================================
worker          ``hello`` (protocol, python, sessions)
parent          ``start`` (adapter source, options, environment, time_limit, memory_limit, repeats, measure)
worker          ``ready`` (description, environment, sessions), or ``unavailable`` (message, captured)
parent          ``run`` (jobs: number, model, feeds, course), any number of times, also before earlier jobs are done
worker          ``began`` once the message is decoded, then one ``report`` per job as soon as that job is done
worker          ``died`` (signal, code, captured) in place of all reports that were still due
parent          end of file: the worker ends, even during a job
=============  =================================================================================================

On systems with ``fork``, two processes share the work. The started process, the watcher, forks before anything else is
loaded. It reports to the parent how the child died, with its last output, also from another machine. It kills the child
as soon as the parent is gone or sends SIGTERM, even if the child hangs. On Linux it adopts all orphaned descendants of
the child, including those in sessions of their own, and ends them before itself. ``worker.py --watch COMMAND ...`` does
the same for a program that speaks the protocol itself.

Descriptors 1 and 2 point at a capture file before the runtime is loaded. So the runtime's output cannot be taken for
protocol, and belongs to the job that printed it. The parent imports the framing from this file.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import stat
import struct
import sys
from opcode import opname
from time import monotonic, perf_counter, sleep  # imported as names: a runtime may replace attributes of `time`
from types import ModuleType
from typing import Any, NamedTuple

PROTOCOL = 1
MAGIC = b"ONXSPEC1"
SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")  # abilities of sessions beyond runs in turn
CAPTURE_VARIABLE = "ONNXSPEC_CAPTURE"  # the capture file (device:inode) that the parent passed as stderr

FOLDER_VARIABLE = "ONNXSPEC_ADAPTER_FOLDER"  # folder of an adapter's file, for workers on the parent's machine

_PREFIX = struct.Struct("<8sIQ")
_ALIGNMENT = 16  # of each buffer in a body: the widest element, complex128
_HEADER_LIMIT = 1 << 28
_BODY_LIMIT = 1 << 36
OUTPUTS_LIMIT = 1024  # maximum number of outputs of a run: no operator has more than three, a whole model some dozens
_GREETING_LIMIT = 1 << 16  # bytes that a login shell may print before the first frame
_CHUNK = 1 << 16  # bytes read at once
_WRITE_AT_ONCE = 1 << 20  # frames up to this size are joined and written in one call
_FILE_LIMIT = 1 << 30  # bytes in any file: a runtime that prints without end must not fill the disk
_MESSAGE_LIMIT = 500
_ADAPTER_FILE = "<adapter>"  # name of an adapter's source text in tracebacks
_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate memory")  # messages of C++ and of onnxruntime's arenas
_CAPTURE_LIMIT = 4000
_GRACE = 1.0  # seconds for a process to end by itself after its parent is gone
_PROGRAM_GRACE = 6.0  # the same for a program: enough for the last output of a worker on another machine
_END_LIMIT = 3.0  # seconds to end all descendants; those that restart as fast are left to the parent


class Tensor(NamedTuple):
    """One array on the wire: name of the element type, shape, C-ordered little-endian bytes."""

    element: str
    shape: tuple[int, ...]
    data: bytes


class Payload:
    """The arrays of one frame; `add` returns the number by which the header refers to each."""

    def __init__(self) -> None:
        self.table: list[Any] = []
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, tensor: Tensor) -> int:
        """Append `tensor`, padded so that the next one is aligned; return its number."""
        self.table.append((tensor.element, tensor.shape))
        padding = -len(tensor.data) % _ALIGNMENT
        self.parts.append(tensor.data)
        if padding:
            self.parts.append(bytes(padding))
        self.size += len(tensor.data) + padding
        return len(self.table) - 1


def pack_frame(header: dict[str, Any], payload: Payload | None = None) -> list[bytes]:
    """Return a frame as few, large pieces to be written one after the other."""
    payload = payload or Payload()
    text = json.dumps(dict(header, arrays=payload.table), separators=(",", ":")).encode("ascii")
    text += b" " * (-(len(text) + _PREFIX.size) % _ALIGNMENT)
    pieces = [_PREFIX.pack(MAGIC, len(text), payload.size), text, *payload.parts]
    return [b"".join(pieces)] if payload.size <= _WRITE_AT_ONCE else pieces


def write_frame(descriptor: int, header: dict[str, Any], payload: Payload | None = None) -> None:
    """Write one complete frame."""
    for piece in pack_frame(header, payload):
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]


def one_line(text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """Return `text` as one line of at most `limit` characters, unprintable ones escaped; a cut is marked."""
    text_line = " ".join(text[: 4 * limit].split())
    safe = text_line if text_line.isprintable() else "".join(map(_escape, text_line))
    return safe if len(safe) <= limit and len(text) <= 4 * limit else safe[:limit] + " ..."


def printed_text(descriptor: int) -> str:
    """Return beginning and end of the text in the open file `descriptor`, with unprintable characters escaped."""
    size = os.fstat(descriptor).st_size
    half = _CAPTURE_LIMIT // 2
    os.lseek(descriptor, 0, os.SEEK_SET)
    if size <= _CAPTURE_LIMIT:
        raw = os.read(descriptor, _CAPTURE_LIMIT)
    else:
        raw = os.read(descriptor, half) + f"\n... {size - 2 * half} bytes left out ...\n".encode("ascii")
        os.lseek(descriptor, size - half, os.SEEK_SET)
        raw += os.read(descriptor, half)
    text = raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return "".join(c if c in "\n\t" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


class Capture:
    """Descriptors 1 and 2 as a file, emptied after every job; if a runtime closes them, they are opened again."""

    def __init__(self) -> None:
        status = os.fstat(2)
        identity = f"{status.st_dev}:{status.st_ino}"
        if not stat.S_ISREG(status.st_mode) or os.environ.get(CAPTURE_VARIABLE) != identity:
            # Not started by a parent on this machine: the file behind stderr must not be emptied.
            import tempfile

            with tempfile.TemporaryFile() as file:
                os.dup2(file.fileno(), 2)
        self._file = os.dup(2)
        os.dup2(2, 1)
        self.forget()
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            raw: Any = io.FileIO(descriptor, "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True))

    def take(self) -> str:
        """Return the text printed since the last call; empty if the runtime has closed the file's own descriptor."""
        try:
            for descriptor in (1, 2):
                self._reopen(descriptor)
            if os.fstat(self._file).st_size == 0:
                return ""
            text = printed_text(self._file)
            self.forget()
            return text
        except OSError:
            return ""

    def _reopen(self, descriptor: int) -> None:
        try:
            os.fstat(descriptor)
        except OSError:  # it is closed, and the runtime's next file would get this descriptor
            os.dup2(self._file, descriptor)

    def forget(self) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)


def take_station() -> tuple[int, int, Capture]:
    """Move the conversation to other descriptors, and return them and the capture of printed text.

    From then on 0, 1 and 2 point elsewhere, and another process watches this one.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(incoming, os.O_BINARY)
        msvcrt.setmode(outgoing, os.O_BINARY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    capture = Capture()
    if sys.platform != "win32":
        _stand_guard(incoming, outgoing)
    return incoming, outgoing, capture


def _stand_guard(incoming: int, outgoing: int) -> None:
    """Continue in a new process, which this one watches until its end; return in the new one only."""
    status = _watched(incoming, _GRACE)
    if status is None:
        return
    by = status & 0x7F
    header = {"type": "died", "signal": signal_name(by), "code": None if by else status >> 8, "captured": ""}
    with contextlib.suppress(OSError):
        header["captured"] = printed_text(2)
    with contextlib.suppress(OSError):  # the parent is gone
        write_frame(outgoing, header)
    _end_like(status)


def _watch_program(command: list[str]) -> None:
    """Run a program on the standard streams of this process, watch it, and end as it did."""
    status = _watched(0, _PROGRAM_GRACE)
    if status is None:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"cannot start {command[0]!r}: {error.strerror or error}\n".encode("utf-8", "backslashreplace"))
        os._exit(127)
    _end_like(status)


def signal_name(number: int) -> str | None:
    import signal

    return next((s.name for s in signal.Signals if s == number), f"signal {number}") if number else None


def _end_like(status: int) -> None:
    """End this process with the given status, or by the given signal."""
    import signal

    by = status & 0x7F
    if by:
        if by != signal.SIGKILL:
            signal.signal(by, signal.SIG_DFL)
        os.kill(os.getpid(), by)
    os._exit(status >> 8)


def _watched(incoming: int, grace: float) -> int | None:
    """Fork. Return None in the new process.

    In this process, return the status of the new one, after all its descendants have ended.

    incoming
        The descriptor whose hang-up shows that the parent is gone.
    grace
        Seconds for the new process to end by itself after that. If the parent sends SIGTERM it is killed at once.
    """
    import select
    import signal

    requests: list[int] = []
    wake, waker = os.pipe()  # gets a byte with every signal
    os.set_blocking(waker, False)
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphaned descendants become children of this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and closes our input
    before = signal.signal(signal.SIGTERM, lambda number, frame: requests.append(number))
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    _limit_resource("RLIMIT_CORE", 0)
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(wake)
        os.close(waker)
        if _prctl(1, 9) and os.getppid() != watcher:  # PR_SET_PDEATHSIG, SIGKILL; it may have ended before
            os._exit(0)
        return None
    if incoming == 0:  # a program has the standard streams to itself
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
    poller = select.poll()
    poller.register(wake, select.POLLIN)
    poller.register(incoming, getattr(select, "POLLRDHUP", 0))
    pause, deadline = 500, 0.0
    while True:
        status = _reaped(child)
        if status is not None:
            break
        if requests or (deadline and monotonic() > deadline):
            os.kill(child, signal.SIGKILL)
        for descriptor, _ in poller.poll(pause):
            if descriptor == wake:
                os.read(wake, 512)
            else:
                poller.unregister(descriptor)
                pause, deadline = 50, monotonic() + grace  # the parent is gone, so the process should end by itself
    _end_descendants()
    if requests:
        os._exit(0)
    return status


def _reaped(child: int) -> int | None:
    """Return the status of a child if it has ended; discard all other ended children."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid in (0, child):
            return status if pid else None


def _end_descendants() -> None:
    """End all remaining descendants: processes that lose their parent become children of this process."""
    import signal

    if not sys.platform.startswith("linux"):
        return
    this, deadline = os.getpid(), monotonic() + _END_LIMIT
    while monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
            if _parent_of(pid) == this:
                with contextlib.suppress(OSError):  # it is gone already, or the pid was reused by another user
                    os.kill(pid, signal.SIGKILL)
        sleep(0.001)


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _libc() -> Any:
    """Return the C library of this process, or None."""
    with contextlib.suppress(ImportError, OSError, TypeError):
        import ctypes

        return ctypes.CDLL(None)
    return None


def _prctl(option: int, value: int) -> bool:
    """Set a property of this process, if the system can do that."""
    prctl = getattr(_libc(), "prctl", None) if sys.platform.startswith("linux") else None
    if prctl is not None:
        prctl(option, value, 0, 0, 0)
    return prctl is not None


def _limit_resource(kind: str, limit: int) -> None:
    """Lower one of the limits of :mod:`resource`, if the system has it."""
    try:
        import resource
    except ImportError:
        return
    number = getattr(resource, kind)
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (limit if hard < 0 else min(limit, hard), hard))


if __name__ == "__main__":
    # The interpreter put this file's folder, or with -c and -m the current folder, at the start of the import path.
    _HERE = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else os.getcwd()
    if sys.path and sys.path[0] in ("", _HERE):
        del sys.path[0]
    if sys.argv[1:2] == ["--watch"]:
        _watch_program(sys.argv[2:])
    _STATION = take_station()  # before NumPy is loaded, since fork does not copy its threads

import numpy as np  # noqa: E402

_ELEMENTS = {
    name: np.dtype(np.uint16 if name == "bfloat16" else name).newbyteorder("=" if sys.byteorder == "little" else "<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}


# `dtype.name` builds its result anew each time; looking a type up costs a thirtieth of that.
_NAMES = {dtype: name for name, dtype in _ELEMENTS.items() if name != "bfloat16"}


class ProtocolError(Exception):
    """Bytes that violate this protocol."""


class Bfloat16Bits(np.ndarray):
    """bfloat16 values as uint16 bits, for adapters, since NumPy has no such type.

    Both directions are marked by the attribute ``element``, so that an adapter can declare its own class.
    """

    element = "bfloat16"


def tensor_of(value: Any) -> Tensor:
    """Turn an array, or a value that NumPy makes an array of, into a `Tensor`.

    Raise `TypeError` if the elements are not numbers (objects, strings, records), and NumPy's own exceptions if `value`
    cannot be an array.
    """
    marked = getattr(value, "element", None) == "bfloat16"
    array = np.asarray(value)
    name = _NAMES.get(array.dtype)
    if name is None or marked:
        name = array.dtype.name
        # ml_dtypes calls its type bfloat16; onnx before 1.19 used a uint16 with one field of that name.
        if (marked and name == "uint16") or name == "bfloat16" or array.dtype.names == ("bfloat16",):
            return Tensor("bfloat16", array.shape, array.view(np.uint16).tobytes())
        if name not in _ELEMENTS:
            raise TypeError(f"element type {name}")
        array = array.astype(_ELEMENTS[name])  # to this byte order
    return Tensor(name, array.shape, array.tobytes())


def unpack_arrays(header: dict[str, Any], body: bytes) -> list[tuple[str, np.ndarray]]:
    """Return element type and array of each buffer of a frame; the arrays are read-only views of `body`.

    Raise `ProtocolError` when the table and the body do not fit together.
    """
    arrays = []
    offset = 0
    try:
        for element, shape in header["arrays"]:
            count = 1
            for extent in shape:
                count *= extent
            dtype = _ELEMENTS[element]
            array = np.frombuffer(body, dtype, count, offset).reshape(shape)
            arrays.append((element, array))
            size = count * dtype.itemsize
            offset += size + -size % _ALIGNMENT
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ProtocolError(f"array table: {error}") from None
    if offset != len(body):
        raise ProtocolError(f"array table covers {offset} of {len(body)} bytes")
    return arrays


class FrameReader:
    """Parser for frames in a stream of bytes that arrives in pieces of any size.

    Text before the first frame is skipped and kept in `greeting`: login shells of remote machines print some.
    """

    def __init__(self, header_limit: int = _HEADER_LIMIT, body_limit: int = _BODY_LIMIT) -> None:
        """Prepare a reader; frames beyond the limits, in bytes, are refused before they are read."""
        self.greeting = b""
        self._header_limit = header_limit
        self._body_limit = body_limit
        self._buffer = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> None:
        """Append the next piece of the stream."""
        self._buffer += data

    def read(self, descriptor: int) -> tuple[dict[str, Any], bytes] | None:
        """Return the next frame from a descriptor, or None at the end of the stream."""
        while True:
            frame = self.next()
            if frame is not None:
                return frame
            data = os.read(descriptor, _CHUNK)
            if not data:
                return None
            self.feed(data)

    def next(self) -> tuple[dict[str, Any], bytes] | None:
        """Return header and body of the next whole frame of the parent, or None while it is incomplete."""
        frame = self.next_raw()
        return None if frame is None else (json.loads(frame[0].decode("utf-8")), frame[1])

    def next_raw(self) -> tuple[bytes, bytes] | None:
        """Return the next frame with its header as bytes. Raise `ProtocolError`."""
        buffer = self._buffer
        if not self._begun:
            self._skip_greeting()
        if len(buffer) < _PREFIX.size:
            if not MAGIC.startswith(bytes(buffer[: len(MAGIC)])):
                self._refuse()
            return None
        magic, header_size, body_size = _PREFIX.unpack_from(buffer)
        if magic != MAGIC:
            self._refuse()
        for part, size, limit in (("header", header_size, self._header_limit), ("body", body_size, self._body_limit)):
            if size > limit:
                raise ProtocolError(f"a frame whose {part} is to have {size} bytes, more than the {limit} that it may")
        start = _PREFIX.size + header_size
        if len(buffer) < start + body_size:
            return None
        with memoryview(buffer) as view:
            header, body = bytes(view[_PREFIX.size : start]), bytes(view[start : start + body_size])
        del buffer[: start + body_size]
        self._begun = True
        return header, body

    def _skip_greeting(self) -> None:
        start = self._buffer.find(MAGIC)
        if start < 0:
            # Keep bytes that may be the start of a magic that is split between pieces.
            start = max(0, len(self._buffer) - len(MAGIC) + 1)
        self.greeting += bytes(self._buffer[:start])
        del self._buffer[:start]
        if len(self.greeting) > _GREETING_LIMIT:
            raise ProtocolError(f"no frame in the first {_GREETING_LIMIT} bytes")

    def _refuse(self) -> None:
        if self._begun:
            sample = one_line(bytes(self._buffer[:80]).decode("utf-8", "backslashreplace"), 100)
            raise ProtocolError("bytes that are no frame: " + sample)


def _unbuffer_c_output() -> None:
    """Make C's stdout unbuffered: otherwise it would buffer into a file, and an abort would lose the last output."""
    with contextlib.suppress(ImportError, AttributeError, TypeError, ValueError):  # without it, output may come late
        import ctypes

        libc = _libc()
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2 if sys.platform != "win32" else 4, 0)


def _fill_memory() -> None:
    """Make the GNU C library fill memory that it hands out, to reveal outputs that a runtime never wrote.

    It uses the complement of the byte: 0x7F7F is NaN in float16 and enormous in the other types.
    """
    if sys.platform.startswith("linux"):
        with contextlib.suppress(AttributeError, ValueError):  # another C library
            _libc().mallopt(-6, int(os.environ.get("MALLOC_PERTURB_", 0x80)))  # M_PERTURB


def _offer_to_the_killer() -> None:
    """Make this process the first one to be killed when the machine runs out of memory."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _limit_memory(limit: int) -> None:
    """Let the jobs take `limit` bytes of address space beyond the loaded runtime."""
    held = 0
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _limit_resource("RLIMIT_AS", held + limit)


def load_adapter(source: str, options: dict[str, Any]) -> Any:
    """Execute an adapter's source as a module and return its ``Adapter(options)``.

    An adapter that declares defaults of its options gets all of them.
    """
    module = adapter_module(source)
    defaults = getattr(module, "OPTION_DEFAULTS", None)
    return module.Adapter(options if defaults is None else _settled(options, defaults))


_KINDS = {bool: "true or false", int: "a whole number", str: "a text", list: "a list", dict: "a table"}


def _settled(options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return all options, with defaults for missing ones.

    Raise ValueError for an unknown one, and for one with another type than its default: the text "false" is no switch.
    """
    for name, value in options.items():
        if name not in defaults:
            hint = "known: " + ", ".join(sorted(defaults)) if defaults else "there are none"
            raise ValueError(f"unknown option {name!r}; {hint}")
        if type(value) is not type(defaults[name]):
            raise ValueError(f"option {name!r} must be {_KINDS[type(defaults[name])]}, is {value!r}")
    return dict(defaults, **options)


_LOADED: dict[str, ModuleType] = {}  # modules that a forked worker inherits


def adapter_module(source: str) -> ModuleType:
    """Return the module with that source text. It may import modules beside its file, where that is on this machine."""
    if source not in _LOADED:
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder:
            sys.path.append(folder)  # at the end: installed packages of the same name are the runtime
        module = ModuleType("onnxspec_adapter")
        sys.modules[module.__name__] = module
        exec(compile(source, _ADAPTER_FILE, "exec"), module.__dict__)
        _LOADED[source] = module
    return _LOADED[source]


def measured_by(source: str) -> dict[str, Any]:
    """Return the measurements of this process by the module with that source; empty if there is none, or an error."""
    if not source:
        return {}
    module = ModuleType("onnxspec_measuring")
    try:
        exec(compile(source, "<measuring>", "exec"), module.__dict__)
        environment: dict[str, Any] = module.measured()
        json.dumps(environment)
    except Exception as error:
        return {"error": describe_error(error)}
    return environment


def describe_error(error: BaseException) -> str:
    """Return type and text of an exception in one bounded line, also when its own ``__str__`` fails."""
    try:
        text = str(error)
    except Exception as second:
        text = f"(its text cannot be had: {type(second).__name__})"
    name = type(error).__name__
    return one_line(name + ": " + text if text else name)


class Course(NamedTuple):
    """Course of a job whose sessions do more than run every feed in turn.

    models
        Models of further sessions: the job's own is session 0, these are 1, 2, ... Each is prepared at its first step
        and stays until the end.
    attempts
        Feeds that may be refused; they are not reported.
    steps
        ``["run", session, feed]``, ``["try", session, attempt]``, or ``["look", step]``: compare the outputs held since
        that step.
    """

    models: tuple[bytes, ...] = ()
    attempts: tuple[Any, ...] = ()
    steps: tuple[Any, ...] = ()


class Sessions:
    """Sessions of one job, with their outputs."""

    def __init__(self, adapter: Any, models: Any, feeds: Any, most: int = _BODY_LIMIT) -> None:
        self._adapter, self._models, self._feeds, self._most = adapter, models, feeds, most
        self._sessions: dict[int, Any] = {}
        self._originals = [{name: array.tobytes() for name, (_, array) in feed.items()} for feed in feeds]
        self._kept = 0
        self.seen: list[list[list[Tensor | None]]] = [[] for _ in feeds]
        # For each run of a feed, the index of its result in `seen`.
        self.returned: list[list[int]] = [[] for _ in feeds]
        self.changed: set[str] = set()
        self.altered: set[int] = set()
        self.malformed = ""
        self.phase = "load"
        self.proof = ""

    def open(self, number: int) -> Any:
        """Return the session of that model, prepared now if necessary."""
        if number not in self._sessions:
            self.phase = "load"
            self._sessions[number] = self._adapter.prepare(self._models[number])
            self.phase = "run"
        return self._sessions[number]

    def run(self, session: int, number: int) -> tuple[Any, list[Tensor | None]]:
        """Return the outputs of a session for a feed, as they are and as copies."""
        feed = self._feeds[number]
        inputs = {name: _fresh(element, array) for name, (element, array) in feed.items()}
        results = self.open(session).run(dict(inputs))
        outputs, complaint = plain_outputs(results, self._most - self._kept)
        self.malformed = self.malformed or complaint
        for name, array in inputs.items():
            if array.shape != feed[name][1].shape or array.tobytes() != self._originals[number][name]:
                self.changed.add(name)
        if outputs not in self.seen[number]:
            self.seen[number].append(outputs)
            self._kept += sum(_padded(len(tensor.data)) for tensor in outputs if tensor is not None)
        self.returned[number].append(self.seen[number].index(outputs))
        return results, outputs

    def attempt(self, session: int, feed: Any) -> None:
        """Run a feed that may be refused."""
        opened = self.open(session)
        try:
            opened.run({name: _fresh(element, array) for name, (element, array) in feed.items()})
        except Exception as error:
            if failure_of(error)["status"] != "refused":
                raise

    def follow(self, steps: Any, attempts: Any) -> None:
        """Run the steps of a course once."""
        held: dict[int, Any] = {}
        looked_at = {step[1] for step in steps if step[0] == "look"}
        for number, step in enumerate(steps):
            if step[0] == "run":
                outcome = self.run(step[1], step[2])
                if number in looked_at:
                    held[number] = outcome
            elif step[0] == "try":
                self.attempt(step[1], attempts[step[2]])
            else:
                results, before = held[step[1]]
                if plain_outputs(results)[0] != before:
                    self.altered.add(steps[step[1]][2])

    def end(self) -> None:
        """Delete the sessions, after their `finish`."""
        for number in sorted(self._sessions):
            session = self._sessions[number]
            finish = getattr(session, "finish", None)
            if finish is not None:
                finish()
            self.proof = self.proof or str(getattr(session, "proof", "") or "")
            del finish, session
        self._sessions.clear()


def run_job(
    adapter: Any,
    model: bytes,
    feeds: list[dict[str, tuple[str, np.ndarray]]],
    repeats: int,
    most: int = _BODY_LIMIT,
    course: Course | None = None,
) -> tuple[dict[str, Any], Payload]:
    """Prepare `model` once, run every feed `repeats` times in turn, and return the report; never raise.

    With a `course`, its steps are run `repeats` times instead. If the outputs together exceed `most` bytes, the report
    only notes that.

    Every run gets fresh copies of its inputs, which are compared with the originals afterwards. The session is deleted
    before the return, so that a runtime that crashes in its teardown is blamed for this job.
    """
    report: dict[str, Any] = {"status": "ran"}
    course = course or Course(steps=tuple(("run", 0, number) for number in range(len(feeds))))
    sessions = Sessions(adapter, (model, *course.models), feeds, most)
    began = perf_counter()
    try:
        sessions.open(0)
        for _ in range(repeats):
            sessions.follow(course.steps, course.attempts)
        sessions.end()
        if sessions.proof:
            report["proof"] = one_line(sessions.proof, 4 * _MESSAGE_LIMIT)
    except BaseException as error:
        report.update(failure_of(error))
    report.setdefault("phase", sessions.phase)
    report["seconds"] = round(perf_counter() - began, 7)
    if sessions.malformed:
        report["malformed"] = sessions.malformed
    if sessions.changed:
        report["changed"] = sorted(sessions.changed)
    if sessions.altered:
        report["altered"] = sorted(sessions.altered)
    payload = Payload()
    report["returned"] = sessions.returned
    report["outputs"] = [
        [[None if tensor is None else payload.add(tensor) for tensor in outputs] for outputs in distinct]
        for distinct in sessions.seen
    ]
    return report, payload


def _fresh(element: str, array: np.ndarray) -> np.ndarray:
    return array.copy().view(Bfloat16Bits) if element == "bfloat16" else array.copy()


_MISTAKES = (AssertionError, AttributeError, LookupError, TypeError, ArithmeticError, BufferError, RecursionError)
"""Exceptions that indicate a bug in a program; some programs also refuse with them."""

_MISFITS = (
    "operands could not be broadcast together",
    "could not broadcast input array",
    "not aligned:",
    "matmul: Input operand",
    "The truth value of an array",
    "need at least one array",
    "all the input array",
    "setting an array element with a sequence",
    "cannot reshape array of size",
    "axes don't match array",
    "cannot select an axis to squeeze out",
    "reduction operation",
    "negative dimensions are not allowed",
    "values to unpack",
)
"""Parts of ValueErrors that NumPy or Python raise where arrays or counts do not fit; programs do not raise them."""


def failure_of(error: BaseException) -> dict[str, Any]:
    """Return the report of an exception; an adapter's exceptions may carry ``status``, ``phase`` and ``proof``.

    ``broke_at`` is set if the exception indicates a bug in a program.
    """
    failure = {"status": "refused", "message": describe_error(error)}
    broke_at = _broke_at(error)
    if broke_at:
        failure["broke_at"] = broke_at
    if isinstance(error, MemoryError) or any(text in failure["message"] for text in _OUT_OF_MEMORY):
        failure["status"] = "crashed"  # running out of memory does not show whether the model is supported
    elif isinstance(error, OSError) and error.errno == errno.EFBIG:
        failure["status"] = "crashed"  # it wrote or printed without end
    elif not isinstance(error, Exception):
        failure["status"] = "crashed"  # SystemExit and others: without this worker the process would have ended
    elif broke_at and isinstance(error, NameError):
        failure["status"] = "crashed"  # a name that does not exist is never a refusal
    elif getattr(error, "status", None) in ("fell-back", "unavailable"):
        failure["status"] = getattr(error, "status", "")
        # A message that an adapter raises on purpose needs no class name in front of it.
        failure["message"] = failure["message"].partition(": ")[2] or failure["message"]
    if getattr(error, "phase", None) in ("load", "run"):
        failure["phase"] = getattr(error, "phase", "")
    proof = getattr(error, "proof", None)
    if isinstance(proof, str):
        failure["proof"] = one_line(proof, 4 * _MESSAGE_LIMIT)
    return failure


def _broke_at(error: BaseException) -> str:
    """Return where a program failed: file, line and function of the innermost frame.

    Return an empty text for refusals: other exceptions, a framework's own classes, and exceptions that the adapter
    raises on purpose.
    """
    package = type(error).__module__.partition(".")[0]
    trace = error.__traceback__
    if package not in ("builtins", "numpy") or trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raising = opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    if code.co_filename == _ADAPTER_FILE and raising:
        return ""
    raiser = trace.tb_frame.f_globals.get("__name__", "") if raising else ""
    if not isinstance(error, (NameError, *_MISTAKES)) and not _misfit(error, raiser):
        return ""
    return one_line(f"{os.path.basename(code.co_filename)}, line {trace.tb_lineno}, in {code.co_name}", 200)


def _misfit(error: BaseException, raiser: str) -> bool:
    """Return whether a ValueError comes from NumPy or Python, not from the program.

    `raiser` is the module whose ``raise`` raised it, empty if that was no Python code.
    """
    if not isinstance(error, ValueError):
        return False
    if raiser:
        return raiser.partition(".")[0] == "numpy"
    return type(error).__module__.startswith("numpy") or any(text in str(error) for text in _MISFITS)


def plain_outputs(results: Any, most: int = _BODY_LIMIT) -> tuple[list[Tensor | None], str]:
    """Return a runtime's outputs as tensors, None for each that is no array, and their defect ("" if there is none).

    A missing output (None) is no defect here: some may be missing, so the verdict decides. If all together have more
    than `most` bytes, none of them is copied.
    """
    complaint = ""
    if not isinstance(results, (list, tuple)):
        complaint = f"returned {type(results).__name__} instead of a list of outputs"
        results = [results] if isinstance(results, np.ndarray) else []
    if len(results) > OUTPUTS_LIMIT:
        complaint = complaint or f"returned {len(results)} outputs"
        results = results[:OUTPUTS_LIMIT]
    size = sum(_padded(value.nbytes) for value in results if isinstance(value, np.ndarray))
    if size > most:
        return [None] * len(results), f"returned outputs of {size} bytes, and there is room for {max(most, 0)} more"
    outputs: list[Tensor | None] = []
    for number, value in enumerate(results):
        try:
            outputs.append(None if value is None else tensor_of(value))
        except Exception as error:
            outputs.append(None)
            complaint = complaint or one_line(
                f"output {number} is no array of numbers: {error} ({type(value).__name__})"
            )
    return outputs, complaint


def _padded(size: int) -> int:
    return size + -size % _ALIGNMENT


def _course(job: dict[str, Any], arrays: Any) -> Course | None:
    """Return the course of a job, or None."""
    if "course" not in job:
        return None
    models = tuple(arrays[index][1].tobytes() for index in job["course"]["models"])
    attempts = tuple({name: arrays[index] for name, index in feed.items()} for feed in job["course"]["attempts"])
    return Course(models, attempts, tuple(job["course"]["steps"]))


def _converse(incoming: int, outgoing: int, capture: Capture) -> None:
    import platform

    write_frame(
        outgoing, {"type": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0], "sessions": SESSIONS}
    )
    reader = FrameReader()
    first = reader.read(incoming)
    if first is None or first[0].get("type") != "start":
        return
    start = first[0]
    try:
        for variable, value in start.get("environment", {}).items():
            if value is None:  # NumPy was loaded without the caller's value
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
        _fill_memory()
        adapter = load_adapter(start["adapter"], start["options"])
        description = adapter.describe()
        description.setdefault("numpy", np.__version__)
        description.setdefault("python", platform.python_version())
        description.setdefault("platform", platform.platform())
        description.setdefault("machine", platform.machine())
        json.dumps(description)
        environment = measured_by(start.get("measure", ""))
        if start.get("memory_limit"):
            _limit_memory(start["memory_limit"])
    except BaseException as error:
        message = describe_error(error)
        write_frame(outgoing, {"type": "unavailable", "message": message, "captured": capture.take()})
        return
    declared = getattr(adapter_module(start["adapter"]), "SESSIONS", ())  # older adapters have none
    write_frame(
        outgoing,
        {
            "type": "ready",
            "description": description,
            "environment": environment,
            "captured": capture.take(),
            "sessions": [name for name in SESSIONS if name in declared],
        },
    )
    this_process = os.getpid()
    while True:
        frame = reader.read(incoming)
        if frame is None:
            return
        header, body = frame
        arrays = unpack_arrays(header, body)
        write_frame(outgoing, {"type": "began", "jobs": [job["number"] for job in header["jobs"]]})
        for job in header["jobs"]:
            model = arrays[job["model"]][1].tobytes()
            feeds = [{name: arrays[index] for name, index in feed.items()} for feed in job["feeds"]]
            most = start.get("output_limit", _BODY_LIMIT)
            report, payload = run_job(adapter, model, feeds, start["repeats"], most, _course(job, arrays))
            if os.getpid() != this_process:
                os._exit(0)  # the runtime has forked, and both processes returned: the child must not report
            report.update(type="report", number=job["number"])
            printed = capture.take()
            if printed:
                report["captured"] = printed
            write_frame(outgoing, report, payload)


def main(incoming: int, outgoing: int, capture: Capture) -> None:
    """Serve one parent until it closes the input."""
    import faulthandler

    _limit_resource("RLIMIT_FSIZE", _FILE_LIMIT)
    _offer_to_the_killer()
    _unbuffer_c_output()
    faulthandler.enable()
    with contextlib.suppress(OSError):  # the parent is gone
        _converse(incoming, outgoing, capture)
    os._exit(0)  # without the runtime's teardown, which may hang or crash when there is no job left to blame


if __name__ == "__main__":
    main(*_STATION)
