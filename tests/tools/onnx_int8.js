// SPDX-License-Identifier: MIT-0
// onnx_int8.js LIST FOLDER inside|outside: ONNX Runtime beside our whole numbers, once with its integer kernels, once with floats
// between QuantizeLinear and DequantizeLinear: every layer's steps (inside, from NAME.inside.onnx) and the logits.
const fs = require("fs"), ort = require("onnxruntime-node");
const [list, folder, side] = process.argv.slice(2);
const numbers = path => { const b = fs.readFileSync(path); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };

// a number that is not ours follows from one before it, or lies within a rounding error of half a step
const ways = { "integer kernels": "all", "floats": "disabled" };

async function compare(line, options, sum) {
    const [name, , given, result, , step, layers] = line.split("\t"), inside = side === "inside";
    const session = await ort.InferenceSession.create(`${folder}/${name}${inside ? ".inside" : ""}.onnx`, options);
    const x = new ort.Tensor("float32", new Float32Array(numbers(`${folder}/${name}.in`)), given.split(",").map(Number));
    const out = await session.run({ [session.inputNames[0]]: x });
    const theirs = out[session.outputNames[0]], ours = new Float32Array(numbers(`${folder}/${name}.out`));
    const samples = theirs.dims[0], classes = theirs.dims[1], equal = new Array(samples).fill(inside);
    if (theirs.dims.join() !== result) throw new Error(`shape ${theirs.dims}, not ${result}`);
    if (inside) {
        const steps = new Uint8Array(numbers(`${folder}/${name}.steps`));
        let at = 0;
        for (let s = 0; s < samples; s++) for (const layer of layers.trim().split(" ")) {
            const [node, count] = [layer.split(":")[0], Number(layer.split(":")[1])], their = out[`${node}/steps`].data;
            let far = 0;
            if (their.length !== samples * count) throw new Error(`${node}: ${their.length} steps`);
            for (let k = 0; k < count; k++, at++) {
                const d = Math.abs(steps[at] - their[s * count + k]);
                sum.other += d > 0;
                far = Math.max(far, d);
            }
            sum.numbers += count;
            if (far > 1 && equal[s]) throw new Error(`${node}: ${far} steps from the same numbers`);
            if (far) equal[s] = false;
        }
        if (at !== steps.length) throw new Error(`${steps.length} steps, not ${at}`);
    }
    for (let i = 0; i < ours.length; i++) {
        const d = Math.abs(ours[i] - theirs.data[i]) / Number(step);
        sum.logits++;
        if (d <= 0.51) continue;
        sum.off++;
        if (!(d <= 500) || equal[Math.floor(i / classes)]) throw new Error(`a logit differs by ${d} steps`);
    }
}
async function main() {
    let failed = 0;
    for (const way in ways) {
        const sum = { numbers: 0, other: 0, logits: 0, off: 0 };
        const options = { intraOpNumThreads: 1, logSeverityLevel: 3, graphOptimizationLevel: ways[way],
                          extra: { session: { x64quantprecision: "1" } } };
        let bad = 0;
        for (const line of fs.readFileSync(list, "utf8").split("\n").filter(l => l)) {
            try { await compare(line, options, sum); } catch (e) {
                bad++;
                console.log(`FAIL ${line.split("\t")[0]}, ${way}: ${e.message.split("\n")[0]}`);
            }
        }
        if (side === "inside") console.log(`# ${way}: ${sum.other} of ${sum.numbers} whole numbers inside are not ours`);
        console.log(`# ${way}: ${sum.off} of ${sum.logits} logits are not ours to half a step, which is 1/65534 of their range`);
        if (!(sum.other <= sum.numbers / 10000 && sum.off <= sum.logits / 100)) bad++;
        const what = side === "inside" ? "layer by layer, all but 1 in 10,000 equal" : "all but 1 logit in 100 equal";
        console.log(`${bad ? "FAIL" : "ok"} ONNX Runtime's whole numbers (${way}) are ours: ${what}`);
        failed |= bad;
    }
    process.exit(failed ? 1 : 0);
}
main();
