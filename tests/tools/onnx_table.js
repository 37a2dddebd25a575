// SPDX-License-Identifier: MIT-0
// onnx_table.js MODEL TABLE: in how many of every fifth row of a table of numbers, the class last, ONNX Runtime finds the class.
const fs = require("fs"), ort = require("onnxruntime-node");
const [model, table] = process.argv.slice(2);

async function main() {
    const rows = fs.readFileSync(table, "utf8").split("\n").filter(l => l).map(l => l.split(",").map(Number)).filter((r, i) => i % 5 === 4);
    const width = rows[0].length - 1, x = Float32Array.from(rows.flatMap(r => r.slice(0, width)));
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 3 });
    const out = await session.run({ [session.inputNames[0]]: new ort.Tensor("float32", x, [rows.length, width]) });
    const y = out[session.outputNames[0]], classes = y.dims[1];
    let right = 0;
    rows.forEach((r, i) => {
        const logits = Array.from(y.data.slice(i * classes, (i + 1) * classes));
        right += logits.indexOf(Math.max(...logits)) === r[width];
    });
    console.log(`${right} of ${rows.length}`);
}
main();
