/* SPDX-License-Identifier: MIT-0
   web.js: the page of examples/web beside tools/web_native.c, which computes the same here.
       node web.js module WASM NATIVE          the module alone, in node
       node web.js page INDEX NATIVE FOLDER    the page in headless Chromium, by chromedriver; its pictures go to FOLDER */
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs'), path = require('path');
const { driver, KEY, sleep } = require('./browser.js');
const [what, file, native, folder] = process.argv.slice(2);
let bad = 0;
function verdict(good, name, why) {
    console.log(good ? `ok ${name}` : `FAIL ${name}: ${why}`);
    if (!good) bad = 1;
}
/* lines of numbers, as the native program prints them */
const computed = (...words) => execFileSync(native, words.map(String)).toString().trim().split('\n')
    .map(line => line.split(' ').map(word => Number(word.replace('inf', 'Infinity'))));
const equal = (a, b) => a.length === b.length && a.every((v, i) => Object.is(v, b[i]));

function gate_of(m, l, x) {
    return [m.gate(x, l), m.gate_dx(x, l), m.exact(x, l), m.exact_dx(x, l), m.gap(l), m.gate_error(l), m.curves_hash(l) >>> 0];
}
function report(m, swapped) {
    if (m.view(128, swapped)) throw new Error('view');
    const lambda = Array.from({ length: m.layers() }, (_, i) => m.lambda(i));
    return [m.step(), m.loss(), ...lambda, m.flips(), m.max_change(), m.score(swapped), m.weights_hash() >>> 0];
}
function module_alone() {
    const m = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(file))).exports;
    let other = '';
    for (const l of [0, 0.25, 1, 1.693147, 2, 10, 159.57691, 1e4, Infinity].map(Math.fround))
        for (const x of [-3, -0.75, -1e-3, 0, 1e-30, 0.5, 2.9].map(Math.fround)) {
            const here = computed('gate', l, x)[0], there = gate_of(m, l, x);
            if (!equal(here, there)) other = `λ ${l}, x ${x}: ${there} for ${here}`;
        }
    verdict(!other, 'gate, derivative and yardstick in WebAssembly have the bits they have here', other);
    ['spirals', 'moons', 'circles'].forEach((name, set) => {
        const here = computed('train', set, 60, 90), there = [];
        if (m.begin(set) || m.train(60)) throw new Error('train');
        there.push(report(m, 0), report(m, 1));
        if (m.mend()) throw new Error('mend');
        there.push(report(m, 2));
        m.harden(90);
        if (m.train(90)) throw new Error('train');
        there.push(report(m, 0), report(m, 1));
        verdict(here.every((line, i) => equal(line, there[i])), `${name}: trained, swapped, refitted, hardened and swapped to the last bit as here`,
            `${JSON.stringify(there)} for ${JSON.stringify(here)}`);
    });
}

/* ---- the page ---- */
async function page() {
    const b = await driver();
    try { await visit(b); } finally { await b.end(); }
}
async function visit(b) {
    const text = id => b.run('return document.getElementById(arguments[0]).textContent', id);
    const click = id => b.run('document.getElementById(arguments[0]).click()', id);
    const seen = async () => JSON.parse(await b.run('return document.getElementById("two").dataset.seen'));
    const until = async (name, test) => {
        for (let i = 0; i < 900; i++) { const s = await seen(); if (test(s)) return s; await sleep(100); }
        throw new Error(`waited too long for ${name}: ${JSON.stringify(await seen())}`);
    };
    const number = async id => Number((await text(id)).replace(/−/g, '-').replace(' ', ''));
    const size = (width, height) => b.cdp('Emulation.setDeviceMetricsOverride',
        { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    const mode = value => b.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
    const picture = async name => {
        const { data } = await b.cdp('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true });
        fs.writeFileSync(path.join(folder, `${name}.png`), Buffer.from(data, 'base64'));
    };
    const line = s => [s.step, s.loss, ...s.lambda, s.flips, s.change, s.score, s.weights];

    await size(1600, 1000);
    const ready = () => b.run('return document.documentElement.dataset.ready === "yes"');
    const open = async () => {
        await b.go(`file://${path.resolve(file)}`);
        for (let i = 0; i < 200 && !await ready(); i++) await sleep(50);
    };
    await open();
    verdict(await ready(), 'the page starts', await text('failure'));

    /* the slider, by its keys */
    let other = '';
    await b.run('document.getElementById("lambda").focus()');
    for (const keys of [KEY.home, KEY.right.repeat(77), KEY.end]) {
        await b.keys(keys);
        const place = await b.run('return Number(document.getElementById("lambda").value)');
        const l = Math.fround(10 ** (place * 0.003)), x = Math.fround(-0.75), [here] = computed('gate', l, x);
        const ids = ['f', 'dx', 'f-exact', 'dx-exact', 'gap', 'gate-error'], places = [9, 9, 11, 11, 7, 7];
        for (let i = 0; i < ids.length; i++)
            if (await number(ids[i]) !== Number(here[i].toPrecision(places[i])))
                other += `${ids[i]} at λ ${l}: ${await text(ids[i])} for ${here[i]}; `;
        if (keys === KEY.end && place !== 1000 || keys === KEY.home && place !== 0) other += `the slider stands at ${place}; `;
    }
    verdict(!other, 'the slider moved by its keys: kernel, yardstick and distance to ReLU as computed here', other);

    /* from the keyboard alone: each thing has the focus once, in order, and shows it */
    await open();
    const order = [];
    for (let i = 0; i < 11; i++) {
        await b.keys(KEY.tab);
        order.push(await b.run(`const e = document.activeElement, shown = e.name === "set" ? e.nextElementSibling : e;
            return (e.id || e.name || e.hash) + (getComputedStyle(shown).outlineStyle === "none" ? " unseen" : "")`));
    }
    verdict(order.join() === '#convert,#one,#two,repository,model,example,lambda,x,set,train,reset',
        'the tab key finds everything that can be used, and the focus is seen', order.join());
    const unnamed = await b.run(`return [...document.querySelectorAll("input, button, canvas")].filter(e => !(e.textContent.trim()
        || e.getAttribute("aria-label") || e.labels && [...e.labels].some(l => l.textContent.trim()))).length`);
    verdict(unnamed === 0, 'everything that can be used or seen has a name', `${unnamed} have none`);

    /* trained, swapped too early, hardened, swapped: each data set */
    const names = ['spirals', 'moons', 'circles'];
    for (let set = 0; set < 3; set++) {
        await b.run('document.getElementsByName("set")[arguments[0]].click()', set);
        await click('train');
        await until('training', s => s.step >= 250);
        await click('train');
        const smooth = await until('the pause', s => !s.running);
        verdict(smooth.score > 0.95, `${names[set]}: trained, ${(100 * smooth.score).toFixed(1)} % of new points right`,
            smooth.score);
        await click('swap');
        const early = await until('the early swap', s => s.swapped);
        await picture(`${names[set]}_early`);
        verdict(early.flips > 0 && early.flips === smooth.flips,
            `${names[set]}: a swap before hardening flips ${early.flips} cells`, `${early.flips}, ${smooth.flips} announced`);
        await click('refit');
        const refitted = await until('the refit', s => s.swapped === 2);
        await picture(`${names[set]}_refitted`);
        verdict(4 * refitted.flips < early.flips && refitted.score > 0.95,
            `${names[set]}: the refit leaves ${refitted.flips} of these cells changed`, JSON.stringify(refitted));
        await click('swap');
        await until('the swap back', s => !s.swapped);
        await click('harden');
        const hard = await until('hardening', s => s.hardening && s.step >= s.hardening[1] && !s.running);
        await click('swap');
        const relu = await until('the swap', s => s.swapped);
        await picture(`${names[set]}_swapped`);
        verdict(relu.flips <= 4 && relu.score > 0.95 && relu.side === 128,
            `${names[set]}: hardened and swapped, ${relu.flips} of 16384 cells flipped`, JSON.stringify(relu));
        const here = computed('train', set, smooth.step, hard.step - smooth.step);
        verdict([smooth, early, refitted, hard, relu].every((s, i) => equal(here[i], line(s))),
            `${names[set]}: loss, λ's, flips, logits and weights as computed here, to the last bit`,
            `${JSON.stringify([smooth, early, refitted, hard, relu].map(line))} for ${JSON.stringify(here)}`);
    }
    await click('reset');
    const fresh = await seen();
    verdict(fresh.step === 0 && !fresh.swapped && !fresh.hardening, 'reset forgets all', JSON.stringify(fresh));

    /* one animation, whatever is pressed while it runs: each frame calls back once */
    await b.run(`document.getElementsByName("set")[0].click();
        const ask = window.requestAnimationFrame.bind(window);
        window.calls = {};
        window.requestAnimationFrame = f => ask(now => { window.calls[now] = (window.calls[now] || 0) + 1; f(now); });`);
    await click('train');
    await until('training', s => s.step >= 250);
    await b.run('for (const id of ["train", "train", "harden", "train", "train"]) document.getElementById(id).click()');
    await until('hardening', s => s.hardening && s.step >= s.hardening[1] && !s.running);
    const calls = await b.run('return Object.values(window.calls)');
    verdict(calls.length > 2 && Math.max(...calls) === 1, 'Harden and Train during training: one animation, a call in each frame',
        `${calls.length} frames, ${Math.max(...calls)} calls in one`);

    /* how it looks: nothing wider than the page */
    await b.run('const s = document.getElementById("lambda"); s.value = 200; s.dispatchEvent(new Event("input"))');
    for (const width of [360, 768, 1600])
        for (const scheme of ['light', 'dark']) {
            await size(width, 900);
            await mode(scheme);
            await sleep(150);
            await picture(`${width}_${scheme}`);
            const wide = await b.run('return document.documentElement.scrollWidth');
            const ground = await b.run('return getComputedStyle(document.body).backgroundColor');
            const light = ground.match(/\d+/g).map(Number)[0] > 127;
            verdict(wide <= width && light === (scheme === 'light'), `${width} pixels wide, ${scheme}`, `${wide} pixels, ${ground}`);
        }
    const log = (await b.log()).filter(entry => entry.level !== 'INFO' && entry.level !== 'DEBUG');
    verdict(log.length === 0 && !await text('failure'), 'no error in the console', JSON.stringify(log));
}

(async () => what === 'module' ? module_alone() : page())().catch(error => verdict(false, what, error.stack))
    .then(() => process.exit(bad));
