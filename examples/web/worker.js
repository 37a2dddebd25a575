/* SPDX-License-Identifier: MIT-0
   worker.js: runs convert.c in a worker. Each message opens the model in a fresh instance, so that nothing remains of the one before;
   Cancel ends the worker. Files come as Blobs and are read here.
       { open: { module, files, memory } }                             answers { model }
       { convert: { module, files, inputs, relus, memory, scale } }    answers { tell } several times, then { done }
   or { failed: text, memory: bytes } */
'use strict';
let exports, begun = 0;
const utf8 = new TextEncoder(), words = new TextDecoder();
const bytes = () => new Uint8Array(exports.memory.buffer);
const view = () => new DataView(exports.memory.buffer);

/* What wasi-libc imports: a clock and an end. There are no files, and what is printed is dropped. */
const system = {
    clock_time_get(id, precision, to) { view().setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true); return 0; },
    fd_write(file, list, count, to) {
        let n = 0;
        for (let i = 0; i < count; i++) n += view().getUint32(list + 8 * i + 4, true);
        view().setUint32(to, n, true);
        return 0;
    },
    proc_exit(status) { throw new Error(`ended with status ${status}`); }
};
const UNSUPPORTED = 52;
const imports = {
    wasi_snapshot_preview1: new Proxy(system, { get: (all, name) => all[name] || (() => UNSUPPORTED) }),
    page: { tell(at, n) { postMessage({ tell: JSON.parse(words.decode(bytes().subarray(at, at + n))) }); } }
};

function text_in(at) {
    const all = bytes();
    return words.decode(all.subarray(at, all.indexOf(0, at)));
}
function room(n) {
    const at = exports.room(n) >>> 0;
    if (!at) throw new Error('out of memory');
    return at;
}
function put(data) {
    const at = room(data.length);
    bytes().set(data, at);
    return at;
}
const put_name = name => put(utf8.encode(name + '\0'));
const check = status => { if (status) throw new Error(text_in(exports.message())); };
const answer = () => bytes().slice(exports.answer() >>> 0, (exports.answer() >>> 0) + (exports.answer_bytes() >>> 0));
const answer_json = () => JSON.parse(words.decode(answer()));

/* A file goes to the module's memory piece by piece: it is never twice in this tab's. */
async function give(name, blob) {
    const at = room(blob.size), piece = 1 << 24;
    for (let from = 0; from < blob.size; from += piece)
        bytes().set(new Uint8Array(await blob.slice(from, from + piece).arrayBuffer()), at + from);
    check(exports.give(put_name(name), at, blob.size));
}
async function open({ module, files, relus = 1, memory }) {
    exports = (await WebAssembly.instantiate(module, imports)).exports;
    exports._initialize();
    exports.set_options(relus, memory);
    for (const { name, file } of files) await give(name, file);
    check(exports.open_model(put_name(files[0].name)));
    return answer_json();
}

/* ---- inputs ---- */
/* An array of bytes as numpy.save has it */
function npy(shape, data) {
    let head = `{'descr': '|u1', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
    head += ' '.repeat(63 - (10 + head.length) % 64) + '\n';
    return new Blob([new Uint8Array([0x93, 0x4E, 0x55, 0x4D, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]), head, data]);
}
/* Images in the size of the input, as the browser decodes and resizes them: (images, channels, rows, columns), or channels last */
async function images({ files, channels, rows, columns, last }) {
    const canvas = new OffscreenCanvas(columns, rows), g = canvas.getContext('2d', { willReadFrequently: true });
    const size = channels * rows * columns, all = new Uint8Array(files.length * size);
    for (let i = 0; i < files.length; i++) {
        let image;
        try {
            image = await createImageBitmap(files[i]);
        } catch (error) {
            throw new Error(`${files[i].name}: the browser cannot decode it as an image`);
        }
        g.imageSmoothingQuality = 'high';
        g.fillStyle = '#fff';
        g.fillRect(0, 0, columns, rows);
        g.drawImage(image, 0, 0, columns, rows);
        image.close();
        const { data } = g.getImageData(0, 0, columns, rows);
        for (let p = 0; p < rows * columns; p++) {
            const [red, green, blue] = data.subarray(4 * p, 4 * p + 3);
            const of = channels === 1 ? [Math.round(0.299 * red + 0.587 * green + 0.114 * blue)] : [red, green, blue];
            for (let c = 0; c < channels; c++) all[i * size + (last ? p * channels + c : c * rows * columns + p)] = of[c];
        }
    }
    return npy(last ? [files.length, rows, columns, channels] : [files.length, channels, rows, columns], all);
}
/* The file of input k: what was chosen, or what is made of it */
async function input_file(input, k) {
    if (input.file) return input.file;
    if (input.images) return images(input.images);
    const sizes = room(4 * input.guess.sizes.length);
    input.guess.sizes.forEach((n, i) => view().setInt32(sizes + 4 * i, n, true));
    check(exports.guess(k, input.guess.samples, sizes));
    return new Blob([answer()]);
}

async function convert(job) {
    await open(job);
    job.scale.forEach(([mean, deviation], channel) => exports.set_scale(channel, mean, deviation));
    const made = [];
    for (let k = 0; k < job.inputs.length; k++) {
        const input = job.inputs[k], file = await input_file(input, k);
        await give(input.name, file);
        check(exports.use(k, put_name(input.name)));
        if (!input.file || input.saved) made.push({ name: input.name, file });
    }
    check(exports.convert());
    const report = answer_json();
    check(exports.take());
    return { report, made, file: new Blob([answer()]), memory: exports.memory.buffer.byteLength };
}

onmessage = async ({ data }) => {
    const mine = ++begun;
    try {
        if (data.open) postMessage({ model: await open(data.open) });
        else postMessage({ done: await convert(data.convert) });
    } catch (error) {
        if (mine !== begun) return;
        const said = exports && text_in(exports.message());
        postMessage({ failed: said || String(error.message || error), memory: exports ? exports.memory.buffer.byteLength : 0 });
    }
};
