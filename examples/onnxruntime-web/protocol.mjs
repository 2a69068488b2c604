// The worker's side of docs/worker-protocol.md for runtimes in JavaScript. Needs Node >= 18 and nothing else.
//
// serve(start) does all of it. `start(options)` is an async function that loads the runtime and returns an adapter:
//
//   describe()            JSON values: runtime, version, provider, device, ...
//   async prepare(model)  from the bytes of a model to a session; what it throws is a refusal in phase "load"
//   session.run(feeds)    async; from { name: Tensor } to a list of Tensors in the graph's order
//   session.release()     async, optional
//
// A Tensor is { element, shape, data }: the name of its type, numbers, and a Uint8Array of its bytes.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";

const PROTOCOL = 1;
const MAGIC = Buffer.from("ONXSPEC1", "ascii");
const PREFIX = 20; // magic, 4 bytes length of the header, 8 bytes length of the body
const ALIGNMENT = 16;
const INPUT = 3; // where the process that serves finds the two ends of the conversation
const OUTPUT = 4;
const SERVING = "--serving";
const CAPTURED = 4000; // characters of what was printed that are passed on
const MESSAGE = 500;

/** Bytes of one element of each type. */
export const SIZES = {
  bool: 1, int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, uint64: 8,
  float16: 2, bfloat16: 2, float32: 4, float64: 8, complex64: 8, complex128: 16,
};

/** Serve one parent until it closes the input. */
export async function serve(start) {
  if (process.argv.includes(SERVING)) {
    await converse(start);
    process.exit(0);
  }
  watch();
}

// The process that was started holds the conversation for another one, which gets it as descriptors 3 and 4; its own
// standard output and error are a file. So nothing that a runtime prints, by whatever way, can be taken for protocol,
// and somebody is left to say how the other one died.
function watch() {
  const place = path.join(os.tmpdir(), `onnxspec-${process.pid}-${Date.now()}`);
  const printed = fs.openSync(place, "ax+", 0o600);
  fs.unlinkSync(place);
  const words = [...process.execArgv, ...process.argv.slice(1), SERVING];
  const child = spawn(process.execPath, words, { stdio: ["ignore", printed, printed, 0, 1] });
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || child.kill("SIGKILL"), 1000).unref(); // stuck, and nobody there any more
  child.on("error", (error) => fail(error));
  child.on("exit", (code, signal) => {
    if (code !== 0) {
      send(1, { type: "died", signal, code, captured: textOf(printed) });
    }
    process.exit(code ?? 1);
  });
}

function fail(error) {
  send(1, { type: "unavailable", message: reason(error), captured: "" });
  process.exit(1);
}

async function converse(start) {
  const frames = received();
  send(OUTPUT, { type: "hello", protocol: PROTOCOL, node: process.version });
  const first = frames.next().value;
  if (first === undefined) {
    return;
  }
  let adapter;
  let description;
  try {
    Object.assign(process.env, first.header.environment);
    adapter = await start(first.header.options);
    description = adapter.describe();
  } catch (error) {
    send(OUTPUT, { type: "unavailable", message: reason(error), captured: taken() });
    return;
  }
  send(OUTPUT, { type: "ready", description, captured: taken() });
  for (const { header, tensors } of frames) {
    send(OUTPUT, { type: "began", jobs: header.jobs.map((job) => job.number) });
    for (const job of header.jobs) {
      const [report, arrays] = await reportOn(adapter, job, tensors, first.header.repeats);
      const captured = taken();
      send(OUTPUT, { ...report, ...(captured && { captured }) }, arrays);
    }
  }
}

// Prepare the model once, run every feed `repeats` times in turn, each time on fresh copies of its inputs.
async function reportOn(adapter, job, tensors, repeats) {
  const feeds = job.feeds.map((feed) => Object.entries(feed).map(([name, index]) => [name, tensors[index]]));
  const seen = feeds.map(() => []);
  const returned = feeds.map(() => []);
  const changed = new Set();
  const report = { type: "report", number: job.number, status: "ran", phase: "load" };
  const began = performance.now();
  try {
    const session = await adapter.prepare(tensors[job.model].data);
    report.phase = "run";
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (const [number, feed] of feeds.entries()) {
        const given = Object.fromEntries(feed.map(([name, t]) => [name, { ...t, data: Uint8Array.from(t.data) }]));
        const outputs = await session.run(given);
        for (const [name, tensor] of feed) {
          if (Buffer.compare(given[name].data, tensor.data) !== 0) {
            changed.add(name);
          }
        }
        const place = seen[number].findIndex((earlier) => same(earlier, outputs));
        returned[number].push(place < 0 ? seen[number].push(outputs) - 1 : place);
      }
    }
    await session.release?.();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      // A trap or an abort: nothing in the module's memory can be trusted any more, so end as a native runtime would.
      process.stderr.write(`${error}\n`);
      process.abort();
    }
    report.status = "refused";
    report.message = reason(error);
  }
  report.seconds = (performance.now() - began) / 1000;
  if (changed.size > 0) {
    report.changed = [...changed].sort();
  }
  const arrays = [];
  report.returned = returned;
  report.outputs = seen.map((distinct) => distinct.map((outputs) => outputs.map((tensor) => arrays.push(tensor) - 1)));
  return [report, arrays];
}

function same(one, other) {
  return (
    one.length === other.length &&
    one.every((tensor, k) => {
      const [a, b] = [tensor, other[k]];
      return a.element === b.element && `${a.shape}` === `${b.shape}` && Buffer.compare(a.data, b.data) === 0;
    })
  );
}

// Frames

function* received() {
  for (;;) {
    const prefix = bytes(PREFIX);
    if (prefix === undefined) {
      return;
    }
    if (!prefix.subarray(0, MAGIC.length).equals(MAGIC)) {
      throw new Error("what came in is no frame");
    }
    const header = JSON.parse(bytes(prefix.readUInt32LE(8)).toString("utf8"));
    const body = bytes(Number(prefix.readBigUInt64LE(12)));
    let offset = 0;
    const tensors = header.arrays.map(([element, shape]) => {
      const size = shape.reduce((a, b) => a * b, SIZES[element]);
      const data = body.subarray(offset, offset + size);
      offset += size + padding(size);
      return { element, shape, data };
    });
    yield { header, tensors };
  }
}

// So many bytes of the input; undefined where it has ended.
function bytes(count) {
  const found = Buffer.alloc(count);
  let have = 0;
  while (have < count) {
    const more = patiently(() => fs.readSync(INPUT, found, have, count - have, null));
    if (more === 0) {
      return undefined;
    }
    have += more;
  }
  return found;
}

function send(descriptor, header, tensors = []) {
  const arrays = tensors.map(({ element, shape }) => [element, shape]);
  let text = Buffer.from(JSON.stringify({ ...header, arrays }), "utf8");
  text = Buffer.concat([text, Buffer.alloc(padding(PREFIX + text.length), " ")]);
  const parts = tensors.flatMap(({ data }) => [data, Buffer.alloc(padding(data.length))]);
  const prefix = Buffer.alloc(PREFIX);
  MAGIC.copy(prefix);
  prefix.writeUInt32LE(text.length, 8);
  prefix.writeBigUInt64LE(BigInt(parts.reduce((size, part) => size + part.length, 0)), 12);
  let left = Buffer.concat([prefix, text, ...parts]);
  try {
    while (left.length > 0) {
      left = left.subarray(patiently(() => fs.writeSync(descriptor, left)));
    }
  } catch (error) {
    process.exit(error.code === "EPIPE" ? 0 : 1); // the parent is gone
  }
}

const padding = (size) => (ALIGNMENT - (size % ALIGNMENT)) % ALIGNMENT;

// A descriptor that somebody set not to block says EAGAIN in place of waiting.
function patiently(act) {
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (error.code === "EOF") {
        return 0; // how Windows says it
      }
      if (error.code !== "EAGAIN") {
        throw error;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

// What is printed

function taken() {
  const text = textOf(1);
  if (text !== "") {
    fs.ftruncateSync(1);
  }
  return text;
}

function textOf(descriptor) {
  const size = fs.fstatSync(descriptor).size;
  const part = (from, length) => {
    const raw = Buffer.alloc(length);
    return raw.toString("utf8", 0, fs.readSync(descriptor, raw, 0, length, from));
  };
  const half = CAPTURED / 2;
  return size <= CAPTURED
    ? part(0, size)
    : `${part(0, half)}\n... ${size - CAPTURED} bytes left out ...\n${part(size - half, half)}`;
}

function reason(error) {
  const text = (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).replace(/\s+/g, " ").trim();
  return text.length <= MESSAGE ? text : `${text.slice(0, MESSAGE)} ...`;
}
