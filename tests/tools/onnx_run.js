// SPDX-License-Identifier: MIT-0
// onnx_run.js LIST FOLDER LIMIT: ONNX Runtime's outputs of each network of a list (NAME, type and shape of the input, shape of
// the output) beside ours, differences relative to the largest number. LIMIT write: they become ours, in NAME.out.
const fs = require("fs"), ort = require("onnxruntime-node");
const [list, folder, limit] = process.argv.slice(2);
const numbers = path => { const b = fs.readFileSync(path); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };

const options = { intraOpNumThreads: 1, logSeverityLevel: 3 };

async function main() {
    let bad = 0, count = 0, most = 0;
    for (const line of fs.readFileSync(list, "utf8").split("\n").filter(l => l)) {
        const [name, type, given, result] = line.split("\t");
        count++;
        try {
            const session = await ort.InferenceSession.create(`${folder}/${name}.onnx`, options);
            const raw = numbers(`${folder}/${name}.in`), x = type === "int64" ? new BigInt64Array(raw) : new Float32Array(raw);
            const out = await session.run({ [session.inputNames[0]]: new ort.Tensor(type, x, given.split(",").map(Number)) });
            const theirs = out[session.outputNames[0]];
            if (limit === "write") { fs.writeFileSync(`${folder}/${name}.out`, Buffer.from(theirs.data.buffer)); continue; }
            const ours = new Float32Array(numbers(`${folder}/${name}.out`));
            if (theirs.dims.join() !== result || theirs.data.length !== ours.length)
                throw new Error(`shape ${theirs.dims}, not ${result}`);
            let largest = 0, worst = 0;
            const classes = theirs.dims[theirs.dims.length - 1];
            for (let i = 0; i < ours.length; i++) {
                largest = Math.max(largest, Math.abs(ours[i]));
                const d = Math.abs(ours[i] - theirs.data[i]);
                if (!(d <= worst)) worst = d;
            }
            if (!(worst <= limit * largest)) throw new Error(`differs by ${worst / largest} of the largest output`);
            most = Math.max(most, worst / largest);
        } catch (e) {
            bad++;
            console.log(`FAIL ${name} in ONNX Runtime: ${e.message.split("\n")[0]}`);
        }
    }
    if (limit === "write") process.exit(bad ? 1 : 0);
    const version = require("onnxruntime-node/package.json").version;
    most = most.toExponential(2);
    console.log(`# ONNX Runtime ${version}: ${count} networks, the largest difference ${most} of the largest output`);
    console.log(`${bad ? "FAIL" : "ok"} ONNX Runtime's outputs are ours to ${limit} of the largest`);
    process.exit(bad ? 1 : 0);
}
main();
