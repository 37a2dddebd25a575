// SPDX-License-Identifier: MIT-0
// onnx_random.js CASES OUT: ONNX Runtime's values of the graphs that onnx_random.py wrote, without optimisations. OUT has for each
// case the number of its values, as tensors in the format of CASES; -1 (as a number of 32 bits) and the message where ONNX Runtime
// refuses the graph.
const fs = require("fs"), ort = require("onnxruntime-node");
const [path, out] = process.argv.slice(2);
const file = fs.readFileSync(path), to = fs.openSync(out, "w");
const NAME = { 1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
               12: "uint32", 13: "uint64" };
const CODE = Object.fromEntries(Object.entries(NAME).map(([k, v]) => [v, Number(k)]));
const HALF = typeof Float16Array === "undefined" ? Uint16Array : Float16Array;
const ARRAY = { float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
                int64: BigInt64Array, bool: Uint8Array, float16: HALF, float64: Float64Array, uint32: Uint32Array, uint64: BigUint64Array };
let at = 0;

function whole() { at += 4; return file.readUInt32LE(at - 4); }
function bytes(n) { at += n; return file.subarray(at - n, at); }

function tensor() {
    const name = bytes(whole()).toString(), type = NAME[whole()], rank = whole(), dims = [];
    for (let k = 0; k < rank; k++) dims.push(Number(bytes(8).readBigInt64LE()));
    const n = Number(bytes(8).readBigUInt64LE()), data = bytes(n);
    const copy = data.buffer.slice(data.byteOffset, data.byteOffset + n);
    return [name, new ort.Tensor(type, new ARRAY[type](copy), dims)];
}

function number(x) { const b = Buffer.alloc(4); b.writeUInt32LE(x); return b; }
function wide(x) { const b = Buffer.alloc(8); b.writeBigInt64LE(BigInt(x)); return b; }

function put(parts, name, t) {
    const text = Buffer.from(name), raw = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength);
    parts.push(number(text.length), text, number(CODE[t.type]), number(t.dims.length), ...t.dims.map(wide), wide(raw.length), raw);
}

const options = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4, graphOptimizationLevel: "disabled", enableCpuMemArena: false };

async function main() {
    while (at < file.length) {
        const inputs = Object.fromEntries(Array.from({ length: whole() }, tensor));
        bytes(whole());
        const model = bytes(whole()), parts = [];
        try {
            const session = await ort.InferenceSession.create(model, options);
            const results = await session.run(Object.fromEntries(session.inputNames.map(n => [n, inputs[n]])));
            parts.push(number(session.outputNames.length));
            for (const name of session.outputNames) put(parts, name, results[name]);
            await session.release();
        } catch (e) {
            const text = Buffer.from(String(e.message).split("\n")[0].slice(0, 300));
            parts.length = 0;
            parts.push(number(0xFFFFFFFF), number(text.length), text);
        }
        fs.writeSync(to, Buffer.concat(parts));
    }
    fs.closeSync(to);
}
main();
