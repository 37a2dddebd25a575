// SPDX-License-Identifier: MIT-0
// onnx_random.js CASES OUT: ONNX Runtime's values of the graphs that onnx_random.py wrote, without optimisations unless ORT_OPTIMISE
// says which ("all"). OUT has for each case the number of its values, as tensors in the format of CASES; -1 (as a number of 32 bits)
// and the message where ONNX Runtime refuses the graph. Another process computes them, so that a graph that ends ONNX Runtime is one
// that it refuses, as is one that it has not computed in a minute.
const fs = require("fs"), { fork } = require("child_process"), ort = require("onnxruntime-node");
const { NAME, ARRAY, number, put, options } = require("./onnx_tensors.js");
const [path, out] = process.argv.slice(2);
const file = fs.readFileSync(path);
if (!process.send) fs.writeFileSync(out, "");
const to = fs.openSync(out, "a");
let at = Number(process.argv[4] || 0);

function whole() { at += 4; return file.readUInt32LE(at - 4); }
function bytes(n) { at += n; return file.subarray(at - n, at); }

function tensor() {
    const name = bytes(whole()).toString(), type = NAME[whole()], rank = whole(), dims = [];
    for (let k = 0; k < rank; k++) dims.push(Number(bytes(8).readBigInt64LE()));
    const n = Number(bytes(8).readBigUInt64LE()), data = bytes(n);
    const copy = data.buffer.slice(data.byteOffset, data.byteOffset + n);
    return [name, new ort.Tensor(type, new ARRAY[type](copy), dims)];
}

// Where the next case begins, and whether this one has been written: it outlasts the process.
const state = out + ".state";
function note(done) { fs.writeFileSync(state, `${at} ${done}`); }

function refusal(text) {
    text = Buffer.from(text.split("\n")[0].slice(0, 300));
    return Buffer.concat([number(0xFFFFFFFF), number(text.length), text]);
}

async function compute() {
    while (at < file.length) {
        const inputs = Object.fromEntries(Array.from({ length: whole() }, tensor));
        bytes(whole());
        const model = bytes(whole()), parts = [];
        note(0);
        try {
            const session = await ort.InferenceSession.create(model, options);
            const results = await session.run(Object.fromEntries(session.inputNames.map(n => [n, inputs[n]])));
            parts.push(number(session.outputNames.length));
            for (const name of session.outputNames) put(parts, name, results[name]);
            await session.release();
        } catch (e) {
            parts.splice(0, parts.length, refusal(String(e.message)));
        }
        fs.writeSync(to, Buffer.concat(parts));
        note(1);
    }
    process.disconnect();
}

// Starts another process at the case that begins here.
function start(from) {
    fs.writeFileSync(state, `${from} 1`);
    const child = fork(__filename, [path, out, from]);
    const watch = setInterval(() => {
        if (Date.now() - fs.statSync(state).mtimeMs > 60000) child.kill("SIGKILL");
    }, 10000);
    child.on("exit", (code, signal) => {
        clearInterval(watch);
        const [next, done] = fs.readFileSync(state, "utf8").split(" ").map(Number);
        if (!done) fs.writeSync(to, refusal(`ended by ${signal || code}`));
        else if (next === from && from < file.length) process.exit(1);
        if (next < file.length) return start(next);
        fs.unlinkSync(state);
    });
}

if (process.send) compute();
else start(0);
