/* SPDX-License-Identifier: MIT-0
   page.js: sliders, buttons and pictures. Every number comes from web.c. */
const at = id => document.getElementById(id);
const HARDENING = 900, SMOOTH_MOST = 3000;              /* steps */
const LIVE = 64, FULL = 128;                            /* cells a side while it trains, and at rest */
let lgelu;                                              /* what web.c exports */

async function load() {
    const text = atob(at('module').textContent.trim()), packed = Uint8Array.from(text, c => c.charCodeAt(0));
    const plain = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip')));
    lgelu = (await WebAssembly.instantiate(await plain.arrayBuffer())).instance.exports;
}
const floats = (at, n) => new Float32Array(lgelu.memory.buffer, at, n);
const minus = text => text.replace('-', '−');
/* the digits that tell one float from the next; of a double some more */
const digits = (v, n) => v === 0 ? (1 / v < 0 ? '−0' : '0')
    : minus(Math.abs(v) < 1e-4 ? v.toExponential(n - 1).replace('e', ' e') : v.toPrecision(n));
const hardness = l => l < 10 ? l.toFixed(3) : l < 100 ? l.toFixed(2) : l.toFixed(1);

/* ---- plots: a frame of numbers on a canvas ---- */
let colour = {};
function colours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['ground', 'card', 'ink', 'soft', 'line', 'grid', 'first', 'second', 'third', 'flip'])
        colour[name] = style.getPropertyValue('--' + name).trim();
}
/* the canvas in its own size, cleared; all lengths in CSS pixels */
function canvas(id) {
    const c = at(id), box = c.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    const width = Math.round(box.width), height = Math.round(box.height);
    if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
        c.width = Math.round(width * ratio);
        c.height = Math.round(height * ratio);
    }
    const g = c.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    return { g, width, height };
}
/* axes: x and y = { from, to, ticks: [[value, text]], log } */
function plot(id, x, y) {
    const { g, width, height } = canvas(id), left = 42, right = 10, top = 8, bottom = 22;
    const scale = (a, from, to) => a.log
        ? v => from + (to - from) * Math.log(Math.max(v, a.from / 10) / a.from) / Math.log(a.to / a.from)
        : v => from + (to - from) * (v - a.from) / (a.to - a.from);
    const px = scale(x, left, width - right), py = scale(y, height - bottom, top);
    g.font = '12px system-ui, sans-serif';
    g.lineWidth = 1;
    for (const [v, text] of y.ticks) {
        g.strokeStyle = colour.grid;
        g.beginPath(); g.moveTo(left, py(v)); g.lineTo(width - right, py(v)); g.stroke();
        g.fillStyle = colour.soft; g.textAlign = 'right'; g.textBaseline = 'middle';
        g.fillText(text, left - 7, py(v));
    }
    for (const [v, text] of x.ticks) {
        g.strokeStyle = colour.grid;
        g.beginPath(); g.moveTo(px(v), top); g.lineTo(px(v), height - bottom); g.stroke();
        g.fillStyle = colour.soft; g.textAlign = 'center'; g.textBaseline = 'top';
        g.fillText(text, Math.min(px(v), width - right - g.measureText(text).width / 2 + 6), height - bottom + 6);
    }
    g.save();
    g.beginPath(); g.rect(left, top - 3, width - left - right + 3, height - top - bottom + 6); g.clip();
    return {
        g, px, py,
        line(xs, ys, stroke, { wide = 2.25, dash = [] } = {}) {
            g.strokeStyle = stroke; g.lineWidth = wide; g.lineJoin = 'round'; g.setLineDash(dash);
            g.beginPath();
            for (let i = 0; i < xs.length; i++) g.lineTo(px(xs[i]), py(ys[i]));
            g.stroke();
            g.setLineDash([]);
        },
        dot(vx, vy, fill) {
            g.beginPath(); g.arc(px(vx), py(vy), 4.5, 0, 7);
            g.fillStyle = fill; g.fill();
            g.lineWidth = 2; g.strokeStyle = colour.card; g.stroke();
        },
        end() { g.restore(); }
    };
}
const say = (id, text) => { if (at(id).textContent !== text) at(id).textContent = text; };
const describe = (id, text) => at(id).setAttribute('aria-label', text);

/* ---- one gate ---- */
const whole = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => [from + i, minus(String(from + i))]);
function gate() {
    const lambda = Math.fround(10 ** (at('lambda').value * 0.003)), x = Math.fround(at('x').value);
    const n = lgelu.points(), place = lgelu.curves(lambda);
    const xs = floats(place, n), f = floats(place + 4 * n, n), dx = floats(place + 8 * n, n);
    const y = lgelu.gate(x, lambda), slope = lgelu.gate_dx(x, lambda), gap = lgelu.gap(lambda);
    const across = { from: -3, to: 3, ticks: whole(-3, 3) }, relu = { wide: 1.5, dash: [5, 4] };

    let p = plot('plot-f', across, { from: -0.5, to: 3, ticks: whole(0, 3) });
    p.line([-3, 0, 3], [0, 0, 3], colour.soft, relu);
    p.line(xs, f, colour.first);
    p.dot(x, y, colour.first);
    p.end();
    p = plot('plot-dx', across, { from: -0.2, to: 1.2, ticks: [[0, '0'], [0.5, '0.5'], [1, '1']] });
    p.line([-3, 0, 0, 3], [0, 0, 1, 1], colour.soft, relu);
    p.line(xs, dx, colour.second);
    p.dot(x, slope, colour.second);
    p.end();
    const distance = Array.from(xs, (v, i) => Math.abs(f[i] - Math.max(v, 0)));
    p = plot('plot-gap', across, { from: 1e-6, to: 1, log: true,
        ticks: [[1, '1'], [1e-2, '0.01'], [1e-4, '10⁻⁴'], [1e-6, '10⁻⁶']] });
    p.line([-3, 3], [gap, gap], colour.soft, relu);
    p.line(xs, distance, colour.third);
    p.dot(x, Math.abs(y - Math.max(x, 0)), colour.third);
    p.end();

    say('lambda-is', hardness(lambda));
    say('x-is', minus(x.toFixed(2)));
    at('lambda').setAttribute('aria-valuetext', 'λ = ' + hardness(lambda));
    say('gap', digits(gap, 7));
    say('where', digits(0.7517915 / lambda, 7));
    say('gate-error', digits(lgelu.gate_error(lambda), 7));
    say('f', digits(y, 9));
    say('dx', digits(slope, 9));
    say('f-exact', digits(lgelu.exact(x, lambda), 11));
    say('dx-exact', digits(lgelu.exact_dx(x, lambda), 11));
    describe('plot-f', `The gate at λ = ${hardness(lambda)} beside ReLU`);
    describe('plot-dx', `The gate's derivative at λ = ${hardness(lambda)} beside the step of ReLU`);
    describe('plot-gap', `Distance to ReLU at λ = ${hardness(lambda)}, at most ${digits(gap, 3)}`);
}

/* ---- the network ---- */
let set = 0, running = false, hardening = null, swapped = 0, side = FULL;        /* hardening: its first and last step */
const SWAPPED = 1, REFITTED = 2;                        /* swapped: what the gates are, as in web.c */
let rows = [];                                          /* [step, λ's, fraction of cells that a swap would flip] */
let seen = null;                                        /* what the last look at the network found */

function look(cells) {
    side = cells;
    if (lgelu.view(side, swapped)) throw new Error('the network has no picture');
    const lambda = Array.from({ length: lgelu.layers() }, (_, i) => lgelu.lambda(i)), step = lgelu.step();
    seen = { step, lambda, loss: lgelu.loss(), flips: lgelu.flips(), change: lgelu.max_change(),
        score: lgelu.score(swapped), weights: lgelu.weights_hash() >>> 0 };
    if (swapped === REFITTED) return;                    /* the chart is of swaps alone */
    const row = [step, lambda, seen.flips / (side * side)];
    if (rows.length && rows[rows.length - 1][0] === step) rows.pop();
    rows.push(row);
}
const rgb = text => { const n = parseInt(text.slice(1), 16); return [n >> 16, n >> 8 & 255, n & 255]; };
const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));

const small = document.createElement('canvas');         /* a pixel for each cell */
function regions() {
    const { g, width } = canvas('regions'), cells = new Uint8Array(lgelu.memory.buffer, lgelu.cells(), side * side);
    const card = rgb(colour.card), flip = rgb(colour.flip), sides = [rgb(colour.first), rgb(colour.second)];
    const palette = Array.from({ length: 256 }, (_, v) => mix(card, sides[v >> 7], 0.16 + 0.4 * Math.abs(v - 127.5) / 127.5));
    small.width = small.height = side;
    const s = small.getContext('2d'), image = s.createImageData(side, side);
    for (let i = 0; i < cells.length; i++) {
        const c = swapped && lgelu.flipped(i) ? flip : palette[cells[i]];
        image.data.set([c[0], c[1], c[2], 255], 4 * i);
    }
    s.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, 0, 0, width, width);
    const n = lgelu.samples(), x = floats(lgelu.sample_x(), 2 * n);
    const y = new Int32Array(lgelu.memory.buffer, lgelu.sample_y(), n);
    for (let i = 0; i < n; i++) {
        g.beginPath();
        g.arc((x[2 * i] + 1) / 2 * width, (1 - x[2 * i + 1]) / 2 * width, Math.max(2.5, width / 150), 0, 7);
        g.fillStyle = y[i] ? colour.second : colour.first;
        g.fill();
        g.lineWidth = 1; g.strokeStyle = colour.card;
        g.stroke();
    }
    describe('regions', `Decision regions of the network after ${seen.step} steps${swapped ? ', with ReLU in every gate' : ''}`);
}
function charts() {
    const last = Math.max(300, seen.step), target = lgelu.target(), unit = last > 1500 ? 500 : last > 600 ? 200 : 100;
    const ticks = Array.from({ length: Math.floor(last / unit) + 1 }, (_, i) => [i * unit, String(i * unit)]);
    const steps = { from: 0, to: last, ticks }, dashes = [[], [7, 3], [2, 3]], when = rows.map(row => row[0]);
    let p = plot('plot-lambda', steps, { from: 1, to: 300, log: true, ticks: [[1, '1'], [10, '10'], [100, '100']] });
    p.line([0, last], [target, target], colour.soft, { wide: 1.5, dash: [5, 4] });
    ['first', 'second', 'third'].forEach((name, k) => {
        p.line(when, rows.map(row => row[1][k]), colour[name], { dash: dashes[k] });
    });
    p.end();
    const share = rows.map(row => 100 * row[2]), most = Math.max(...share) > 10 ? 50 : 10;
    p = plot('plot-flips', steps, { from: 0, to: most, ticks: [[0, '0'], [most / 2, String(most / 2)], [most, String(most)]] });
    p.line(when, share, colour.flip);
    p.end();
    describe('plot-lambda', `λ of the layers: ${seen.lambda.map(hardness).join(', ')}`);
    describe('plot-flips', `A swap would flip ${share[share.length - 1].toFixed(2)} percent of the cells`);
}
const done = () => hardening && seen.step >= hardening[1];
function message() {
    const cells = (side * side).toLocaleString('en');
    if (swapped === REFITTED)
        return `Every gate is an exact ReLU, and the weights behind it were solved for again from 1,024 points without a class, ` +
            `in ${took.toFixed(0)} ms. Of ${cells} cells ${seen.flips ? seen.flips.toLocaleString('en') : 'none'} changed.`;
    if (swapped)
        return `Every gate is an exact ReLU now. Of ${cells} cells ${seen.flips ? seen.flips.toLocaleString('en') : 'none'} ` +
            `changed ${seen.flips > 1 ? 'their' : 'its'} class${done() ? '.' : ': that is what a swap before hardening costs. Refit it, or swap back.'}`;
    if (done()) return `Hardened: λ stands at ${hardness(seen.lambda[0])} in every layer. Swap the gates.`;
    if (hardening)
        return `${running ? 'Hardening' : 'Paused'}: λ is driven to ${hardness(lgelu.target())}, then the weights settle.`;
    if (running) return 'Training: weights and λ are learned together.';
    return seen.step ? 'Paused. Train on, harden, or swap now and see.' : 'Not trained yet: press Train.';
}
function show() {
    regions();
    charts();
    say('step', seen.step.toLocaleString('en'));
    say('loss', seen.step ? seen.loss.toPrecision(4) : '–');
    say('score', (100 * seen.score).toFixed(1) + ' %');
    const l = seen.lambda.map(hardness);
    say('lambdas', l.every(v => v === l[0]) ? `${l[0]}, each` : l.join('\u2002'));
    say('flips', `${seen.flips.toLocaleString('en')} of ${(side * side).toLocaleString('en')}`);
    say('change', seen.change.toPrecision(3));
    say('flips-name', swapped === REFITTED ? 'Cells changed after the refit' : swapped ? 'Cells the swap flipped' : 'Cells a swap would flip');
    say('status', message());
    say('train', running ? 'Pause' : 'Train');
    say('swap', swapped ? 'Swap back' : 'Swap to ReLU');
    at('train').disabled = !!done() || (!hardening && seen.step >= SMOOTH_MOST);
    at('harden').disabled = !!hardening || !seen.step;
    at('swap').disabled = !seen.step;
    at('refit').disabled = !seen.step || swapped === REFITTED;
}
/* what the last look found stays on the page as data, too, for whoever wants all digits */
function publish() { at('two').dataset.seen = JSON.stringify({ ...seen, hardening, swapped, side, running }); }
function refresh(cells) { look(cells); show(); publish(); }

let looked = 0, took = 0;                               /* took: the last refit, in milliseconds */
let asked = 0;                                          /* the frame that was asked for, or 0: never two */
function next() { if (!asked) asked = requestAnimationFrame(frame); }
function frame(now) {
    asked = 0;
    if (!running) return;
    const end = performance.now() + 14;
    let left = (hardening ? hardening[1] : SMOOTH_MOST) - lgelu.step();
    for (; left > 0 && performance.now() < end; left--) if (lgelu.train(1)) throw new Error('training failed');
    if (left <= 0) return stop();
    if (now - looked > 90) { looked = now; refresh(LIVE); }
    next();
}
function start() { swapped = 0; running = true; looked = 0; next(); }
function stop() { running = false; refresh(FULL); }
function reset() {
    running = false;
    swapped = 0;
    hardening = null;
    rows = [];
    if (lgelu.begin(set)) throw new Error('the network could not be made');
    refresh(FULL);
}
function buttons() {
    at('train').addEventListener('click', () => running ? stop() : start());
    at('harden').addEventListener('click', () => {
        hardening = [lgelu.step(), lgelu.step() + HARDENING];
        lgelu.harden(HARDENING);
        start();
    });
    at('swap').addEventListener('click', () => { swapped = swapped ? 0 : SWAPPED; stop(); });
    at('refit').addEventListener('click', () => {
        const begin = performance.now();
        if (lgelu.mend()) throw new Error('the refit failed');
        took = performance.now() - begin;
        swapped = REFITTED;
        stop();
    });
    at('reset').addEventListener('click', reset);
    for (const radio of document.getElementsByName('set'))
        radio.addEventListener('change', () => { set = Number(radio.value); reset(); });
    at('lambda').addEventListener('input', gate);
    at('x').addEventListener('input', gate);
    const redraw = () => { colours(); gate(); show(); };
    window.addEventListener('resize', redraw);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}
function failed(error) {
    running = false;
    at('failure').hidden = false;
    say('failure', `This page can't compute here: ${error.message || error}`);
}
window.addEventListener('error', event => failed(event.error || event.message));
load().then(() => {
    colours();
    say('target', hardness(lgelu.target()));
    gate();
    reset();
    buttons();
    document.documentElement.dataset.ready = 'yes';
}).catch(failed);
