// SPDX-License-Identifier: MIT-0
// onnx_files.js FOLDER: reads lines NAME<tab>INPUT=ARRAY.npy..., runs FOLDER/NAME.relu.onnx in ONNX Runtime and compares each output
// with FOLDER/NAME.OUTPUT.npy, what onnx_run computed. A line `ok NAME` or `FAIL NAME: why`; 1e-4 of the largest value is allowed.
const fs = require("fs"), ort = require("onnxruntime-node");
const folder = process.argv[2];
const TYPES = { "<f4": ["float32", Float32Array], "<i8": ["int64", BigInt64Array], "<i4": ["int32", Int32Array] };

function array(path) {
    const file = fs.readFileSync(path), head = file.readUInt16LE(8), text = file.toString("latin1", 10, 10 + head);
    const [type, kind] = TYPES[/'descr': '(.*?)'/.exec(text)[1]];
    const dims = /'shape': \((.*?)\)/.exec(text)[1].split(",").filter(s => s.trim()).map(Number);
    const data = file.buffer.slice(file.byteOffset + 10 + head, file.byteOffset + file.length);
    return new ort.Tensor(type, new kind(data), dims);
}

async function check(name, inputs) {
    const session = await ort.InferenceSession.create(`${folder}/${name}.relu.onnx`, { intraOpNumThreads: 1, logSeverityLevel: 4 });
    const feeds = Object.fromEntries(inputs.map(text => {
        const [input, file] = text.split("=");
        return [input, array(`${folder}/${file}`)];
    }));
    const results = await session.run(feeds);
    for (const output of session.outputNames) {
        const ours = array(`${folder}/${name}.${output}.npy`).data, theirs = results[output].data;
        let largest = 0, change = 0;
        for (let i = 0; i < theirs.length; i++) {
            largest = Math.max(largest, Math.abs(theirs[i]));
            change = Math.max(change, Math.abs(theirs[i] - ours[i]));
        }
        if (ours.length !== theirs.length || !(change <= 1e-4 * largest))
            return `output ${output}: ${change} apart, the largest is ${largest}`;
    }
    return "";
}

async function main() {
    for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
        const [name, ...inputs] = line.split("\t");
        const why = await check(name, inputs).catch(e => String(e.message).split("\n")[0]);
        console.log(why ? `FAIL ${name}: ONNX Runtime: ${why}` : `ok ${name}: ONNX Runtime computes what onnx_run does`);
    }
}
main();
