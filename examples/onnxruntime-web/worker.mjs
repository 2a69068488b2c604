// onnxruntime-web as a target of onnxspec: its WebAssembly build, in Node.
//
// Options: `threads` (default 1), `optimize` (default false: graph optimizations off).

import process from "node:process";

import { serve } from "./protocol.mjs";

const DEFAULTS = { threads: 1, optimize: false };
const ARRAYS = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, float16: Uint16Array, float32: Float32Array,
  float64: Float64Array,
};

async function start(options) {
  const unknown = Object.keys(options).find((name) => !(name in DEFAULTS));
  if (unknown !== undefined) {
    throw new Error(`unknown option '${unknown}'; known: ${Object.keys(DEFAULTS).join(", ")}`);
  }
  const { threads, optimize } = { ...DEFAULTS, ...options };
  let ort;
  try {
    ort = await import("onnxruntime-web");
  } catch (error) {
    throw new Error(`onnxruntime-web is not installed; in the folder of worker.mjs: npm ci (${error.message})`);
  }
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "fatal";
  const settings = {
    executionProviders: ["wasm"],
    graphOptimizationLevel: optimize ? "all" : "disabled",
    logSeverityLevel: 4,
  };
  return {
    describe: () => ({
      runtime: "onnxruntime-web",
      version: ort.env.versions.web,
      provider: "wasm",
      device: "CPU",
      threads,
      optimize,
      node: process.versions.node,
      v8: process.versions.v8,
      platform: process.platform,
      machine: process.arch,
    }),
    prepare: async (model) => new Session(ort, await ort.InferenceSession.create(model, settings)),
  };
}

class Session {
  constructor(ort, session) {
    this.ort = ort;
    this.session = session;
  }

  async run(feeds) {
    const given = Object.entries(feeds).map(([name, tensor]) => [name, this.taken(tensor)]);
    const results = await this.session.run(Object.fromEntries(given));
    return this.session.outputNames.map((name) => givenBack(results[name]));
  }

  release() {
    return this.session.release();
  }

  taken({ element, shape, data }) {
    const Kind = ARRAYS[element];
    if (Kind === undefined) {
      throw new TypeError(`onnxruntime-web has no ${element} tensors`);
    }
    // The same memory, not a copy: whether the runtime changes its inputs is looked at afterwards.
    return new this.ort.Tensor(element, new Kind(data.buffer, data.byteOffset, data.length / Kind.BYTES_PER_ELEMENT), shape);
  }
}

function givenBack({ type, dims, data }) {
  return { element: type, shape: [...dims], data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

await serve(start);
