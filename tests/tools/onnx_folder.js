// SPDX-License-Identifier: MIT-0
// onnx_folder.js MODEL.onnx CASE VALUES ARRAYS: draws inputs for a model and writes them with it to CASE, and to VALUES all values that
// ONNX Runtime computes from them without optimisations, both in the format of onnx_random.js. Sizes that the model leaves open are 1
// in the first dimension, and wherever the name of one of those stands again; for the others some are tried. Into the folder ARRAYS it
// writes each input as NUMBER.npy, of 12 samples where the first dimension is 1 or open, or, where no input has such a dimension, of 12
// whole inputs; the files of external data, too; and on stdout a line INPUT<tab>file for each. Status 1, and a line why: ONNX Runtime refuses it, or it draws random numbers.
const fs = require("fs"), { dirname, join } = require("path"), ort = require("onnxruntime-node");
const { CODE, ARRAY, number, put, options } = require("./onnx_tensors.js");
const [path, casePath, valuesPath, arrays] = process.argv.slice(2);
const file = fs.readFileSync(path), SAMPLES = 12;
const DESCR = { float32: "<f4", float64: "<f8", float16: "<f2", int64: "<i8", int32: "<i4", int16: "<i2", int8: "|i1", uint8: "|u1", bool: "|b1",
                uint16: "<u2", uint32: "<u4", uint64: "<u8" };

// ---- the format of protobuf, as far as names of values need it ----
function varint(b, at) {
    let x = 0, scale = 1, byte;
    do { byte = b[at++]; x += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    return [x, at];
}

// Calls each(field, bytes) for every field of a message that has a length.
function fields(b, each) {
    for (let at = 0; at < b.length;) {
        let key, n;
        [key, at] = varint(b, at);
        const wire = key & 7;
        if (wire === 0) [, at] = varint(b, at);
        else if (wire === 1) at += 8;
        else if (wire === 5) at += 4;
        else if (wire === 2) {
            [n, at] = varint(b, at);
            each(key >> 3, b.subarray(at, at + n));
            at += n;
        } else throw new Error("no protobuf");
    }
}

// The names of all values that nodes of the main graph make, without its outputs.
function madeValues() {
    const made = new Set(), outputs = new Set();
    fields(file, (field, graph) => field === 7 && fields(graph, (of, part) => {
        if (of === 1) fields(part, (k, name) => k === 2 && name.length && made.add(name.toString()));
        if (of === 12) fields(part, (k, name) => k === 1 && outputs.add(name.toString()));
    }));
    return [...made].filter(name => !outputs.has(name));
}

// The files beside the model in which its initializers are.
function externalFiles() {
    const files = new Set();
    fields(file, (field, graph) => field === 7 && fields(graph, (of, tensor) => of === 5 && fields(tensor, (k, entry) => {
        const pair = [];
        if (k === 13) fields(entry, (part, text) => { pair[part] = text.toString(); });
        if (pair[1] === "location") files.add(pair[2]);
    })));
    return [...files];
}

// The operator of a node of the main graph that draws random numbers, or nothing.
function randomOperator() {
    let found;
    fields(file, (field, graph) => field === 7 && fields(graph, (of, node) => of === 1 && fields(node, (k, name) => {
        if (k === 4 && /^(Random|Multinomial|Bernoulli)/.test(name.toString())) found = name.toString();
    })));
    return found;
}

function message(field, bytes) {
    const head = [field << 3 | 2];
    let n = bytes.length;
    for (; n > 127; n = Math.floor(n / 128)) head.push(n % 128 | 128);
    return Buffer.concat([Buffer.from([...head, n]), bytes]);
}

// The model with further outputs: messages that follow one another are merged.
function withOutputs(names) {
    return Buffer.concat([file, message(7, Buffer.concat(names.map(name => message(12, message(1, Buffer.from(name))))))]);
}

// ---- inputs ----
let state = 12345;
function uniform() {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return (state + 0.5) / 4294967296;
}
function normal() { return Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()); }

function half(x) {
    const bits = new Uint32Array(new Float32Array([x]).buffer)[0], exponent = (bits >> 23 & 255) - 112;
    return exponent <= 0 ? bits >>> 16 & 0x8000 : bits >>> 16 & 0x8000 | exponent << 10 | bits >> 13 & 1023;
}

function drawn(type, count, most) {
    const data = new ARRAY[type](count);
    for (let i = 0; i < count; i++) {
        if (type === "float32" || type === "float64") data[i] = normal();
        else if (type === "float16") data[i] = ARRAY.float16 === Uint16Array ? half(normal()) : normal();
        else if (type === "uint8") data[i] = Math.floor(256 * uniform());
        else if (type === "bool") data[i] = uniform() < 0.5 ? 0 : 1;
        else data[i] = type.endsWith("64") ? BigInt(Math.floor((most + 1) * uniform())) : Math.floor((most + 1) * uniform());
    }
    return data;
}

// The sizes of an input, where `open` takes the place of those that the model leaves open; `ones` are the names of those that are 1.
// Behind a first dimension that is fixed, an open size without a name is that of the batch, as in the state of a recurrent layer.
function sizes(info, open, ones) {
    const state = typeof info.shape[0] === "number" && info.shape[0] > 1;
    return info.shape.map((n, k) => typeof n === "number" && n >= 0 ? n : k === 0 || ones.has(n) || (state && !n) ? 1 : open);
}

function hasSamples(info) { return info.shape.length > 0 && (info.shape[0] === 1 || typeof info.shape[0] !== "number"); }

function writeArray(name, info, dims, k, most, alone) {
    const shape = alone ? [SAMPLES, ...dims] : hasSamples(info) ? [SAMPLES, ...dims.slice(1)] : dims, data = drawn(info.type, shape.reduce((a, b) => a * b, 1), most);
    const text = `{'descr': '${DESCR[info.type]}', 'fortran_order': False, 'shape': (${shape.map(n => n + ",").join(" ")}), }`;
    const head = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n", length = Buffer.alloc(2), where = `${arrays}/${k}.npy`;
    length.writeUInt16LE(head.length);
    fs.writeFileSync(where, Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), length, Buffer.from(head),
                                           Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
    console.log(`${name}\t${where}`);
}

function tensors(session, open, most, ones) {
    return Object.fromEntries(session.inputMetadata.map(info => {
        if (!info.isTensor || !ARRAY[info.type]) throw new Error(`input '${info.name}' is no tensor of numbers`);
        const dims = sizes(info, open, ones);
        return [info.name, new ort.Tensor(info.type, drawn(info.type, dims.reduce((a, b) => a * b, 1), most), dims)];
    }));
}

async function main() {
    if (randomOperator()) throw new Error(`${randomOperator()} draws random numbers`);
    for (const name of externalFiles()) fs.copyFileSync(join(dirname(path), name), join(arrays, name));
    const plain = await ort.InferenceSession.create(path, options), ones = new Set();
    for (const info of plain.inputMetadata) {
        if (typeof info.shape[0] === "string" && info.shape[0]) ones.add(info.shape[0]);
    }
    let inputs, results, why, used;
    for (const [open, most] of [[1, 1], [64, 1], [16, 1], [32, 1], [224, 1], [8, 1], [128, 1], [256, 1], [512, 1], [10, 1], [3, 1], [640, 1], [5, 0], [4096, 1], [16000, 1]]) {
        try {
            state = 12345;
            inputs = tensors(plain, open, most, ones);
            results = await plain.run(inputs);
            used = [open, most, ones];
            // a larger size is of more use than 1, if it goes
            if (open !== 1 || !plain.inputMetadata.some(info => info.shape.some((n, k) => k && typeof n !== "number"))) break;
        } catch (e) { why = why || e; }
    }
    if (!used) throw why;
    state = 12345;
    inputs = tensors(plain, ...used);
    let values;
    try {
        fs.writeFileSync(`${arrays}/all.onnx`, withOutputs(madeValues()));
        const all = await ort.InferenceSession.create(`${arrays}/all.onnx`, options);
        const names = all.outputMetadata.filter(info => info.isTensor && CODE[info.type]).map(info => info.name);
        values = await all.run(inputs, names);
    } catch (e) { values = results; }
    const given = [number(Object.keys(inputs).length)], parts = [number(Object.keys(values).length)];
    for (const name in inputs) put(given, name, inputs[name]);
    for (const name in values) put(parts, name, values[name]);
    fs.writeFileSync(casePath, Buffer.concat([...given, number(file.length), file, number(0)]));
    fs.writeFileSync(valuesPath, Buffer.concat(parts));
    const alone = !plain.inputMetadata.some(hasSamples);
    plain.inputMetadata.forEach((info, k) => writeArray(info.name, info, sizes(info, used[0], ones), k, used[1], alone));
}
main().catch(e => { console.log(String(e.message).split("\n")[0].slice(0, 200)); process.exit(1); });
