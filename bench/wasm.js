/* wasm.js SCALAR.wasm SIMD128.wasm: the least time of many short runs, the two in turn.     SPDX-License-Identifier: MIT-0 */
'use strict';
const fs = require('fs');
const sets = process.argv.slice(2).map(f => new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(f))).exports);
for (const set of sets) set.begin();
console.log('ns per number'.padEnd(36) + 'scalar'.padStart(10) + 'simd128'.padStart(10));
for (const [kernel, name, per] of [['relu', 'ReLU', 4096], ['forward', 'lgelu_forward, λ = 1', 4096],
    ['backward', 'lgelu_backward dx and dλ, λ = 1', 4096], ['product', 'product of 64 × 64 × 64, per fma', 64 * 64 * 64]]) {
    const best = sets.map(() => Infinity);
    for (let i = 0; i < 2000; i++) sets.forEach((set, k) => {
        const begin = process.hrtime.bigint();
        set[kernel]();
        best[k] = Math.min(best[k], Number(process.hrtime.bigint() - begin));
    });
    console.log(name.padEnd(36) + best.map(t => (t / per).toFixed(2).padStart(10)).join(''));
}
