#!/usr/bin/env node
// SPDX-License-Identifier: MIT-0
// onnx_runtime_run.js MODEL.onnx --input NAME=X.npy --output NAME=Y.npy: evaluates a file as onnx_run does, in ONNX Runtime with its
// optimisations, so that a file with QuantizeLinear and DequantizeLinear is computed by its integer kernels. Arrays of floats or, as
// inputs, of bytes. An array of more samples than the file takes at a time is evaluated in several runs. ORT_PROFILE=FILE writes to FILE how many nodes of each kind it computes.
const fs = require("fs"), ort = require("onnxruntime-node");
const [model, , given, , wanted] = process.argv.slice(2);
const [input, from] = given.split("="), [output, to] = wanted.split("=");

function read(path) {
    const bytes = fs.readFileSync(path), end = 10 + bytes.readUInt16LE(8), header = bytes.toString("latin1", 10, end);
    const kind = header.match(/<f4|[|]u1/);
    if (!kind || header.includes("'fortran_order': True")) throw new Error(`${path}: expected floats or bytes in the order of C`);
    const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(",").filter(d => d.trim()).map(Number);
    const data = bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + bytes.length);
    return { dims, data: kind[0] === "<f4" ? new Float32Array(data) : new Uint8Array(data) };
}

function write(path, dims, data) {
    const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(", ")},), }`;
    const header = Buffer.from(text.padEnd(117 + Math.ceil(Math.max(0, text.length - 117) / 64) * 64) + "\n", "latin1");
    const start = Buffer.from([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
    fs.writeFileSync(path, Buffer.concat([start, header, ...data.map(d => Buffer.from(d.buffer, d.byteOffset, d.byteLength))]));
}

// The outputs for all samples of x, in groups of as many as the file takes, and their shape.
async function evaluate(session, x) {
    const declared = (session.inputMetadata.find(m => m.name === input) || { shape: [] }).shape[0];
    const group = typeof declared === "number" && declared > 0 ? declared : x.dims[0];
    const each = x.data.length / x.dims[0], parts = [];
    let shape = [];
    for (let k = 0; k < x.dims[0]; k += group) {
        const some = Float32Array.from(x.data.subarray(k * each, (k + group) * each));
        const y = (await session.run({ [input]: new ort.Tensor("float32", some, [some.length / each, ...x.dims.slice(1)]) }))[output];
        parts.push(y.data);
        shape = y.dims;
    }
    return { dims: parts.length > 1 ? [x.dims[0], ...shape.slice(1)] : shape, parts };
}

async function main() {
    const profile = process.env.ORT_PROFILE;
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 3, graphOptimizationLevel: "all",
        enableProfiling: Boolean(profile), profileFilePrefix: profile, extra: { session: { x64quantprecision: "1" } } });
    const y = await evaluate(session, read(from));
    write(to, y.dims, y.parts);
    if (!profile) return;
    session.endProfiling();
    const folder = require("path").dirname(profile), stem = require("path").basename(profile);
    const made = fs.readdirSync(folder).find(name => name.startsWith(`${stem}_`) && name.endsWith(".json"));
    const counts = {};
    for (const e of JSON.parse(fs.readFileSync(`${folder}/${made}`)))
        if (e.cat === "Node" && e.args && e.args.op_name && e.name.endsWith("_kernel_time"))
            counts[e.args.op_name] = (counts[e.args.op_name] || 0) + 1;
    fs.unlinkSync(`${folder}/${made}`);
    fs.writeFileSync(profile, Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([k, n]) => `${n} ${k}\n`).join(""));
}
main().catch(e => { console.error(e.message.split("\n")[0]); process.exit(1); });
