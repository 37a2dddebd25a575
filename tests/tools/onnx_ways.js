// SPDX-License-Identifier: MIT-0
// onnx_ways.js MODEL.onnx ROWS COLUMNS: ONNX Runtime with its optimisations, beside itself without them, for random numbers from -5 to
// 5 as the input. Prints how many elements of the first output differ by how many 255ths, a line for each difference: "-1: 61".
const ort = require("onnxruntime-node");
const [model, rows, columns] = process.argv.slice(2);

async function main() {
    const x = new Float32Array(rows * columns), y = {}, counts = new Map();
    let state = 1;
    for (let k = 0; k < x.length; k++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        x[k] = (state / 2147483648 - 0.5) * 10;
    }
    for (const level of ["disabled", "all"]) {
        const options = { graphOptimizationLevel: level, intraOpNumThreads: 1, logSeverityLevel: 3, extra: { session: { x64quantprecision: "1" } } };
        const session = await ort.InferenceSession.create(model, options);
        const out = await session.run({ [session.inputNames[0]]: new ort.Tensor("float32", x, [Number(rows), Number(columns)]) });
        y[level] = out[session.outputNames[0]].data;
    }
    y.all.forEach((value, k) => {
        const steps = Math.round((value - y.disabled[k]) * 255);
        counts.set(steps, (counts.get(steps) || 0) + 1);
    });
    for (const [steps, count] of counts) console.log(`${steps}: ${count}`);
}
main();
