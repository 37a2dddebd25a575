// SPDX-License-Identifier: MIT-0
// onnx_tensors.js: tensors of ONNX Runtime in the format of onnx_random.py: name, type, rank, dimensions, bytes, data, little-endian.
const NAME = { 1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
               12: "uint32", 13: "uint64" };
const CODE = Object.fromEntries(Object.entries(NAME).map(([k, v]) => [v, Number(k)]));
const HALF = typeof Float16Array === "undefined" ? Uint16Array : Float16Array;
const ARRAY = { float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
                int64: BigInt64Array, bool: Uint8Array, float16: HALF, float64: Float64Array, uint32: Uint32Array, uint64: BigUint64Array };

function number(x) { const b = Buffer.alloc(4); b.writeUInt32LE(x); return b; }
function wide(x) { const b = Buffer.alloc(8); b.writeBigInt64LE(BigInt(x)); return b; }

// Appends a tensor to a list of buffers.
function put(parts, name, t) {
    const text = Buffer.from(name), raw = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength);
    parts.push(number(text.length), text, number(CODE[t.type]), number(t.dims.length), ...t.dims.map(wide), wide(raw.length), raw);
}

const options = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4, enableCpuMemArena: false,
                  graphOptimizationLevel: process.env.ORT_OPTIMISE || "disabled" };

module.exports = { NAME, CODE, ARRAY, number, wide, put, options };
