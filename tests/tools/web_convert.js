/* SPDX-License-Identifier: MIT-0
   web_convert.js: the page that converts, in headless Chromium, beside reluize.
       node web_convert.js INDEX RELUIZE FOLDER SAMPLE
   SAMPLE is the network of the page's example. FOLDER has the networks of web_nets.c; downloads and pictures go there. The browser reaches everything by a proxy that this program
   is: it serves the page as http://page.test/ and counts all other requests. */
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs'), http = require('http'), path = require('path'), zlib = require('zlib');
const { driver, KEY, sleep } = require('./browser.js');
const [index, reluize, folder, sample] = process.argv.slice(2).map(name => path.resolve(name));
let bad = 0;
function verdict(good, name, why) {
    console.log(good ? `ok ${name}` : `FAIL ${name}: ${why}`);
    if (!good) bad = 1;
}
const file = name => path.join(folder, name);

/* ---- requests ---- */
const asked = [];
const server = http.createServer((request, answer) => {
    const page = request.url === 'http://page.test/';
    asked.push(request.url);
    answer.writeHead(page ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' });
    answer.end(page ? fs.readFileSync(index) : '');
});
server.on('connect', (request, socket) => {
    asked.push(request.url);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
});
/* The requests of the page: Chromium itself sends some to Google, for the time and for updates. */
const of_page = () => asked.filter(url => !/google(apis)?\.com|gvt1\.com/.test(url));

/* ---- pictures for an input of images ---- */
function chunk(name, data) {
    const body = Buffer.concat([Buffer.from(name), data]), all = Buffer.alloc(body.length + 8);
    all.writeUInt32BE(data.length, 0);
    body.copy(all, 4);
    all.writeUInt32BE(zlib.crc32 ? zlib.crc32(body) : crc(body), body.length + 4);
    return all;
}
function crc(data) {
    let c = ~0;
    for (const byte of data) {
        c ^= byte;
        for (let k = 0; k < 8; k++) c = c & 1 ? c >>> 1 ^ 0xEDB88320 : c >>> 1;
    }
    return ~c >>> 0;
}
function png(side, seed) {
    const head = Buffer.alloc(13), rows = Buffer.alloc(side * (3 * side + 1));
    head.writeUInt32BE(side, 0);
    head.writeUInt32BE(side, 4);
    head.set([8, 2], 8);
    for (let y = 0, at = 0; y < side; y++) {
        rows[at++] = 0;
        for (let x = 0; x < 3 * side; x++) rows[at++] = 128 + 127 * Math.sin(seed * (x + 2 * y) * 0.37 + x % 3);
    }
    return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head), chunk('IDAT', zlib.deflateSync(rows)),
        chunk('IEND', Buffer.alloc(0))]);
}

/* An array as numpy.save writes it; descr: its type, as '<f4' */
function npy(descr, shape, data) {
    let head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
    head += ' '.repeat(63 - (10 + head.length) % 64) + '\n';
    return Buffer.concat([Buffer.from([0x93, 0x4E, 0x55, 0x4D, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]), Buffer.from(head), data]);
}
/* Values from -2 to 2, which float16 has, too: k/128 */
const sixteenths = n => Float64Array.from({ length: n }, (_, i) => Math.round(256 * Math.sin(0.37 * i * (1 + i % 5))) / 128);
function float16(v) {
    const bits = new Uint32Array(Float32Array.of(v).buffer)[0];
    return v === 0 ? 0 : bits >>> 16 & 0x8000 | (bits >>> 23 & 255) - 112 << 10 | bits >>> 13 & 1023;
}

/* ---- the page ---- */
async function visit(b) {
    const text = id => b.run('return document.getElementById(arguments[0]).textContent', id);
    const click = id => b.run('document.getElementById(arguments[0]).click()', id);
    const until = async (name, test) => {
        for (let i = 0; i < 600; i++) { if (await test()) return; await sleep(50); }
        throw new Error(`waited too long for ${name}: ${await text('say')} ${await text('trouble')}`);
    };
    const busy = () => b.run('return document.getElementById("converter").getAttribute("aria-busy") === "true"');
    /* What the page says names what the page has: no option of the program */
    const named = [];
    const trouble = async () => {
        const said = `${await text('trouble')} ${await text('say')} ${await text('notes')} ${await text('layers')}`;
        named.push(...said.match(/(^|\s)--[a-z]+/g) || []);
        return text('trouble');
    };
    const load = async url => {
        await b.go(url);
        await until('the page', () => b.run('return document.documentElement.dataset.converter === "ready"'));
    };
    const open = async name => {
        await b.choose('model', file(name));
        await until(name, async () => !await busy() && (await text('network') === name || await trouble()));
    };
    const relus = k => b.run(`const s = document.getElementById("relus"); s.value = arguments[0]; s.dispatchEvent(new Event("input"));
        s.dispatchEvent(new Event("change"))`, k);
    const convert = async () => {
        await b.run('document.getElementById("go").focus()');
        await click('go');
        await until('the conversion', async () => !await busy() && (await text('say')).startsWith('Converted') || await trouble());
    };
    const saved = async (id, name) => {
        fs.rmSync(file(name), { force: true });
        await click(id);
        await until(name, () => fs.existsSync(file(name)));
        await sleep(50);
    };
    /* the page, or the converter from the top of one element to the end of another (selectors) */
    const picture = async (name, from, to) => {
        const clip = from && { ...await b.run(`const [all, a, e] = ["#converter", ...arguments].map(id => document.querySelector(id).getBoundingClientRect());
            return { x: all.x + scrollX, y: a.y + scrollY, width: all.width, height: e.bottom - a.y }`, from, to || from), scale: 1 };
        const { data } = await b.cdp('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true, clip: clip || undefined });
        fs.writeFileSync(file(`${name}.png`), Buffer.from(data, 'base64'));
    };
    /* The bytes that were saved beside those that the page's command line makes */
    const same = async (name, net) => {
        const to = file(`${net}.native.onnx`), line = (await text('command')).replace(/^reluize/, `'${reluize}' --quiet`);
        execFileSync('sh', ['-c', line.replace(`${net}.relu.onnx`, `${net}.native.onnx`)], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
        const here = fs.readFileSync(to), there = fs.readFileSync(file(`${net}.relu.onnx`));
        verdict(here.equals(there), `${name}: the page saves the bytes that reluize writes, ${there.length} bytes`,
            `${there.length} bytes, ${here.length} here`);
    };
    const changes = () => b.run('return [...document.querySelectorAll(".layer")].map(e => [...e.querySelectorAll(".change b")].map(x => x.textContent))');

    await b.cdp('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
    await b.cdp('Emulation.setDeviceMetricsOverride', { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false });
    await load('http://page.test/');
    const loaded = of_page().length;
    verdict(loaded === 1, 'the page is loaded by one request', of_page().join(' '));

    /* an array */
    await open('mlp.onnx');
    verdict(/2 smooth gates/.test(await text('about')), 'the gates of a network are listed as soon as it is open', await text('about'));
    verdict(await b.run('return !document.getElementById("guessing").hidden'), 'without files the page says that its inputs are a guess', '');
    await b.choose('input-0', file('mlp.npy'));
    verdict(await b.run('return document.getElementById("guessing").hidden'), 'with an array it does not', '');
    await convert();
    await saved('save', 'mlp.relu.onnx');
    await same('MLP with GELU, an array', 'mlp');
    const seen = await changes();
    verdict(await b.run('return document.activeElement.id') === 'save', 'after a conversion that began with the focus on Convert it is on Save', '');
    verdict(seen.length === 2 && seen.every(([cold, refit]) => parseFloat(refit) < parseFloat(cold)), 'each layer shows the change of the cold swap and a smaller one of the refit',
        JSON.stringify(seen));
    verdict(await b.run('return document.querySelectorAll(".gate polyline.after").length') === 2, 'each gate shows its curve and what takes its place', '');

    /* floats of an image network are used as they are, bytes are scaled */
    const values = sixteenths(60 * 3 * 12 * 12), shape = [60, 3, 12, 12];
    fs.writeFileSync(file('f16.npy'), npy('<f2', shape, Buffer.from(Uint16Array.from(values, float16).buffer)));
    fs.writeFileSync(file('f32.npy'), npy('<f4', shape, Buffer.from(Float32Array.from(values).buffer)));
    fs.writeFileSync(file('f64.npy'), npy('<f8', shape, Buffer.from(values.buffer)));
    fs.writeFileSync(file('u8.npy'), npy('|u1', shape, Buffer.from(Uint8Array.from(values, v => 127 + 60 * v))));
    const made = [];
    for (const name of ['f16', 'f32', 'f64', 'u8']) {
        await open('conv.onnx');
        await b.choose('input-0', file(`${name}.npy`));
        await convert();
        await saved('save', 'conv.relu.onnx');
        await same(`convolutions with SiLU, ${name}.npy at the default choice`, 'conv');
        made.push(fs.readFileSync(file('conv.relu.onnx')));
        const hidden = await b.run('return document.getElementById("pixel-fields").hidden');
        verdict(hidden === (name !== 'u8') && /--mean 0 --std 1/.test(await text('command')) === !hidden,
            `${name}.npy: the field for pixels is ${hidden ? 'hidden' : 'shown'}`, await text('command'));
    }
    verdict(made[1].equals(made[0]) && made[2].equals(made[0]) && !made[3].equals(made[0]), 'the same values in 16, 32 and 64 bits make the same file, bytes another', '');
    fs.writeFileSync(file('notes.bin'), 'no array');
    await b.choose('input-0', file('notes.bin'));
    verdict(/notes\.bin: input 'image' takes a \.npy array, a \.csv table or images/.test(await trouble()) && await b.run('return document.getElementById("input-0").files[0].name') === 'u8.npy',
        'a file of another kind is refused, and the one before stays', await trouble());
    fs.writeFileSync(file('pixels.npy'), npy('<f4', shape, Buffer.from(Float32Array.from(values, v => 127 + 60 * v).buffer)));
    await b.choose('input-0', file('pixels.npy'));
    await convert();
    verdict(/floats from 0 to 255 are used as they are.*choose images or an array of bytes/.test(await text('notes')) && !await trouble(),
        'floats that look like pixels are noted', await text('notes') + await trouble());

    /* images, three ReLUs a gate */
    const images = Array.from({ length: 40 }, (_, i) => {
        fs.writeFileSync(file(`image${i}.png`), png(20 + i, 1 + i));
        return file(`image${i}.png`);
    });
    await open('conv.onnx');
    await b.choose('input-0', ...images);
    verdict(/40 images/.test(await text('state-0')) && !await b.run('return document.getElementById("pixel-fields").hidden'),
        'images are taken for an input of images', await text('state-0'));
    await b.run('const s = document.getElementById("pixels"); s.value = "imagenet"; s.dispatchEvent(new Event("change"))');
    await relus(3);
    await convert();
    await saved('save', 'conv.relu.onnx');
    await saved('save-inputs', 'input.npy');
    await same('convolutions with SiLU, images, 3 ReLUs', 'conv');

    /* images beside tokens that are drawn: only the images are scaled */
    await open('pair.onnx');
    await b.choose('input-0', ...images);
    await b.run('document.getElementById("samples").value = 40');
    await convert();
    await saved('save', 'pair.relu.onnx');
    fs.rmSync(file('input2.npy'), { force: true });
    await saved('save-inputs', 'input1.npy');
    await until('input2.npy', () => fs.existsSync(file('input2.npy')));
    await same('convolutions and a token', 'pair');

    /* a guess */
    await open('block.onnx');
    await relus(2);
    await convert();
    await saved('save', 'block.relu.onnx');
    await saved('save-inputs', 'input.npy');
    await same('transformer block with GELU, tokens that are drawn, 2 ReLUs', 'block');
    verdict(/2 ReLUs/.test(await text('layers')), 'the slider sets the ReLUs of a gate', await text('layers'));
    await relus(1);
    verdict(await b.run('return document.getElementById("save").disabled && document.getElementById("result").hidden'),
        'another number of ReLUs takes back what was made before', '');

    /* open dimensions of one name */
    await open('mask.onnx');
    const sizes = () => b.run('return [...document.querySelectorAll(".sizes input")].map(e => e.value).join()');
    const drawn = await sizes();
    await convert();
    const whole = await trouble();
    await b.run('const s = document.getElementById("size-1-1"); s.value = 9; s.dispatchEvent(new Event("change"))');
    await convert();
    verdict(drawn === '32,32' && !whole && await sizes() === '9,9' && !await trouble(), 'dimensions of one name have one size, which the reader sets once',
        `${drawn}, ${await sizes()}: ${whole} ${await trouble()}`);

    fs.writeFileSync(file('words.txt'), 'to be or not to be');
    await open('block.onnx');
    await b.choose('input-0', file('words.txt'));
    await click('go');
    await until('a refusal', trouble);
    verdict(/different characters, but the network's vocabulary is 11/.test(await trouble()), 'a text of another vocabulary is refused', await trouble());

    /* the example; its bar of progress */
    await b.run(`const bar = document.getElementById("progress");
        window.seen = [];
        new MutationObserver(() => window.seen.push(bar.value)).observe(bar, { attributes: true, attributeFilter: ["value"] })`);
    await b.run('document.getElementById("example").focus()');
    await b.keys(KEY.enter);
    await until('the example', async () => !await busy() && (await text('say')).startsWith('Converted') || await trouble());
    verdict(await text('network') === 'cnn_silu.onnx' && /^Converted/.test(await text('say')) && !await trouble(), 'an example is converted by one press', await trouble());
    fs.copyFileSync(sample, file('cnn_silu.onnx'));
    await saved('save', 'cnn_silu.relu.onnx');
    await saved('save-inputs', 'images.npy');
    await same('the example', 'cnn_silu');
    const bar = await b.run('return window.seen'), begun = bar.lastIndexOf(0);
    verdict(begun >= 0 && bar.length > begun + 3 && bar.slice(begun).every((v, i, all) => !i || v >= all[i - 1]) && bar[bar.length - 1] === 1,
        `the bar of progress rises to its end, ${bar.length - begun} steps`, bar.join(' '));
    verdict(await b.run('const [bar, part] = ["progress", "opened"].map(id => document.getElementById(id).getBoundingClientRect()); return Math.abs(bar.right - part.right) < 1'),
        'which is the edge of its part of the page', '');

    /* the command's button, with the clipboard's interface or without it; what it copied is pasted */
    await b.run('document.getElementById("copy").focus()');
    await b.keys(KEY.enter);
    await until('the copy', async () => await text('copied') === 'Copied.');
    await b.run('const field = document.createElement("textarea"); field.id = "pasted"; document.body.append(field); field.focus()');
    await b.cdp('Input.dispatchKeyEvent', { type: 'keyDown', key: 'v', commands: ['paste'] });
    const pasted = await b.run('const field = document.getElementById("pasted"), text = field.value; field.remove(); return text');
    verdict(pasted === await text('command') && /^reluize cnn_silu\.onnx --data images\.npy /.test(pasted), 'the command is copied by its button', pasted);

    /* what goes wrong */
    fs.writeFileSync(file('broken.onnx'), fs.readFileSync(file('mlp.onnx')).subarray(0, 3000));
    await open('broken.onnx');
    verdict(/broken\.onnx/.test(await trouble()), 'a damaged file is refused by name', await trouble());
    await open('mlp.onnx');
    await b.choose('input-0', file('input.npy'));
    await click('go');
    await until('a refusal', trouble);
    verdict(/input 'x': expected an array \(samples, 16\)/.test(await trouble()), 'an array of another shape is refused with both shapes', await trouble());
    await b.run(`const big = new File([new Uint8Array(1)], "big.onnx");
        Object.defineProperty(big, "size", { value: 3e9 });
        const drop = new Event("drop"); drop.dataTransfer = { files: [big] }; document.dispatchEvent(drop)`);
    await until('a refusal', async () => /big\.onnx/.test(await trouble()));
    verdict(/3\.0 GB; this page takes networks up to 400 MB/.test(await trouble()), 'a file beyond what memory allows is refused before it is read', await trouble());

    await open('memory.onnx');
    if (!await trouble()) await convert();
    verdict(/too many .* elements.*a tab has at most 4 GB, of which .*\s+were in use/.test(await trouble()), 'a file that needs more memory than a tab has is refused with what there is', await trouble());
    await open('huge.onnx');
    verdict(/tensor 'w': too many elements\. The page gives 2 GB/.test(await trouble()), 'so is one with a matrix beyond that', await trouble());
    const before = Date.now();
    await open('big.onnx');
    verdict(/^100 MB, /.test(await text('about')), `a network of 100 MB is opened, ${((Date.now() - before) / 1000).toFixed(1)} s`, await text('about') + await trouble());

    /* names are text */
    await open('names.onnx');
    await convert();
    await sleep(100);
    const title = await b.run('return document.title'), pictures = await b.run('return document.querySelectorAll("img").length');
    const shown = [/<img\tsrc=x\tonerror=document.title='one'>/.test(await text('inputs')), /<img\tsrc=x\tonerror=document.title='two'>/.test(await text('layers'))];
    verdict(title === 'λ-GELU: from smooth gates to ReLU' && !pictures && shown[0] && shown[1], 'names that are HTML are shown as text',
        `${title}, ${pictures} pictures, ${shown}`);

    /* cancel, with the keyboard */
    await open('mlp.onnx');
    await b.run('document.getElementById("samples").value = 100000; document.getElementById("go").focus()');
    await b.keys(KEY.enter);
    await until('the start', busy);
    verdict(await b.run('return document.activeElement.id') === 'cancel', 'while it works the focus is on Cancel', '');
    await sleep(300);
    await b.keys(KEY.enter);
    await until('the end', async () => !await busy());
    verdict(/^Cancelled/.test(await text('say')) && await b.run('return document.activeElement.id') === 'go'
        && await b.run('return document.getElementById("save").disabled'), 'Cancel ends the worker, and the focus is on Convert again', await text('say'));
    await b.run('document.getElementById("samples").value = 64');
    await convert();
    verdict(!await trouble() && await b.run('return !document.getElementById("save").disabled'), 'and the next conversion works', await trouble());

    /* what a screen reader receives, and the order of the keys */
    const unnamed = await b.run(`return [...document.querySelectorAll("#converter input, #converter select, #converter button, #converter progress, #converter svg")]
        .filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels && [...e.labels].some(l => l.textContent.trim()))).length`);
    verdict(unnamed === 0 && await b.run('return document.getElementById("say").getAttribute("role")') === 'status', 'everything has a name, and a live region tells what happens', `${unnamed} have none`);
    await b.run('document.getElementById("model").focus()');
    const order = [];
    for (let i = 0; i < 9; i++) {
        await b.keys(KEY.tab);
        order.push(await b.run('const e = document.activeElement; return e.id + (getComputedStyle(e).outlineStyle === "none" ? " unseen" : "")'));
    }
    verdict(order.join() === 'example,input-0,samples,relus,go,save,save-inputs,copy,lambda', 'the tab key goes through the converter in order', order.join());

    /* nothing leaves the tab */
    const refused = await b.run(`return (async () => { const seen = [];
        addEventListener("securitypolicyviolation", e => seen.push(e.effectiveDirective));
        for (const ask of [() => fetch("http://other.test/"), () => navigator.sendBeacon("http://other.test/", "x"),
            () => { new Image().src = "http://other.test/x.png"; }, () => new WebSocket("ws://other.test/")])
            try { await ask(); } catch (e) { }
        await new Promise(done => setTimeout(done, 200)); return seen.sort(); })()`);
    verdict(refused.includes('connect-src') && refused.includes('img-src'), 'the policy of the page refuses what a script would send', refused.join());
    verdict(of_page().length === loaded, 'no request after the page was loaded', of_page().slice(loaded).join(' '));

    /* how it looks; the page from a disk works, too */
    await load(`file://${index}`);
    const link = await b.run('return document.getElementById("repository").href');
    verdict(/^https:/.test(link) || fs.existsSync(new URL(link)), 'the link to the repository leads somewhere', link);
    await open('conv.onnx');
    await relus(2);
    await convert();
    verdict(!await trouble(), 'the page works from a disk', await trouble());
    /* the picture of the README */
    await b.cdp('Emulation.setDeviceMetricsOverride', { width: 760, height: 900, deviceScaleFactor: 1, mobile: false });
    await b.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] });
    await click('example');
    await until('the example', async () => !await busy() && (await text('say')).startsWith('Converted') || await trouble());
    await b.run('document.activeElement.blur()');
    await picture('page', '#opened', '#layers li:nth-child(2)');
    for (const width of [320, 768, 1920])
        for (const scheme of ['light', 'dark']) {
            await b.cdp('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 });
            await b.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
            await sleep(120);
            await picture(`${width}_${scheme}`);
            await picture(`${width}_${scheme}_converter`, '#converter');
            const wide = await b.run('return document.documentElement.scrollWidth');
            const beyond = await b.run(`const edge = document.getElementById("converter").getBoundingClientRect().right;
                return [...document.querySelectorAll("#converter *")].filter(e => e.getBoundingClientRect().right > edge).map(e => e.id || e.tagName)`);
            verdict(wide <= width && !beyond.length, `${width} pixels wide, ${scheme}`, `${wide} pixels, beyond the edge: ${beyond}`);
        }
    verdict(!named.length, 'no message names an option of the program', named.join());
    const log = (await b.log()).filter(entry => entry.level !== 'INFO' && entry.level !== 'DEBUG' && !/other\.test/.test(entry.message));
    verdict(log.length === 0, 'no error in the console', JSON.stringify(log));
}
async function all() {
    await new Promise(done => server.listen(0, '127.0.0.1', done));
    const b = await driver(`--proxy-server=http://127.0.0.1:${server.address().port}`, '--proxy-bypass-list=<-loopback>', '--hide-scrollbars');
    try { await visit(b); } finally { await b.end(); server.close(); }
}
all().catch(error => verdict(false, 'the page that converts', error.stack)).then(() => process.exit(bad));
