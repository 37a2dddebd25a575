#!/usr/bin/env node
// SPDX-License-Identifier: MIT-0
// forms_time.js INPUT=X.npy NAME=FILE.onnx...: the time of ONNX Runtime for the first sample of X with each network, on one thread, in
// floats and, where FILE.8.1.onnx is beside it, in 8 bits: by the clock, and of the processor, which beside other programs is what the time
// would be without them, but for caches that they share. All take turns in one process (ROUNDS, 60), the first five turns of each are not
// counted; medians, quartiles, and the load of the machine while they ran.
const fs = require("fs"), os = require("os"), ort = require("onnxruntime-node");
const [given, ...networks] = process.argv.slice(2);
const [input, from] = given.split("=");

function sample(path) {
    const bytes = fs.readFileSync(path), end = 10 + bytes.readUInt16LE(8), header = bytes.toString("latin1", 10, end);
    const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(",").filter(d => d.trim()).map(Number);
    const each = dims.slice(1).reduce((a, b) => a * b, 1);
    const floats = header.includes("<f4");
    const data = bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + end + each * (floats ? 4 : 1));
    return new ort.Tensor("float32", Float32Array.from(floats ? new Float32Array(data) : new Uint8Array(data)), [1, ...dims.slice(1)]);
}

function at(times, part) {
    return [...times].sort((a, b) => a - b)[Math.floor(part * (times.length - 1))];
}

function said(times) {
    return `${at(times, 0.5).toFixed(2)} (${at(times, 0.25).toFixed(2)} to ${at(times, 0.75).toFixed(2)})`;
}

async function main() {
    const x = sample(from), sessions = [], loads = [];
    const options = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3, graphOptimizationLevel: "all",
        extra: { session: { x64quantprecision: "1" } } };
    for (const network of networks) {
        const [name, path] = network.split("=");
        for (const [kind, file] of [["floats", path], ["eight", path.replace(/\.onnx$/, ".8.1.onnx")]])
            if (fs.existsSync(file)) sessions.push({ name, kind, clock: [], processor: [], session: await ort.InferenceSession.create(file, options) });
    }
    for (let round = -5; round < Number(process.env.ROUNDS || 60); round++) {
        for (const s of sessions) {
            const start = process.hrtime.bigint(), before = process.cpuUsage();
            await s.session.run({ [input]: x });
            const used = process.cpuUsage(before);
            if (round < 0) continue;
            s.clock.push(Number(process.hrtime.bigint() - start) / 1e6);
            s.processor.push((used.user + used.system) / 1e3);
        }
        loads.push(os.loadavg()[0]);
    }
    console.log("| network | ms, floats: clock | processor | ms, 8 bits: clock | processor |\n|---|---|---|---|---|");
    for (const name of networks.map(network => network.split("=")[0])) {
        const cells = ["floats", "eight"].flatMap(kind => {
            const s = sessions.find(s => s.name === name && s.kind === kind);
            return s ? [said(s.clock), said(s.processor)] : ["", ""];
        });
        console.log(`| ${name} | ${cells.join(" | ")} |`);
    }
    console.log(`\nload ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}, ${os.cpus().length} processors`);
}
main().catch(e => { console.error(e.message.split("\n")[0]); process.exit(1); });
