/* SPDX-License-Identifier: MIT-0
   convert.js: the part of the page that converts a file. It asks worker.js for all that is computed. Names that come from the file
   become text (textContent), never HTML. */
const at = id => document.getElementById(id);
const MEMORY = 2;                       /* GB for the values of the network: --memory */
const LARGEST = 400e6;                  /* bytes of a network: the conversion takes about ten times as much, and a tab has 4 GB */
const FLOAT = 1;
const TYPES = ['', 'float32', 'uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'string', 'bool', 'float16', 'float64', 'uint32',
    'uint64', '', '', 'bfloat16'];
const PIXELS = {
    unit: { scale: [[0, 1], [0, 1], [0, 1]], words: '--mean 0 --std 1' },
    imagenet: { scale: [[0.485, 0.229], [0.456, 0.224], [0.406, 0.225]], words: '--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225' },
    signed: { scale: [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], words: '--mean 0.5 --std 0.5' },
    bytes: { scale: [[0, 0]], words: '--raw' }
};
/* chosen: for each input of the model its files, and whether their values are bytes, which are scaled as the field for pixels says */
let module, worker = null, files = [], model = null, chosen = [], curves = [], rows = [], made = null;

/* ---- words ---- */
const show = (id, text) => { at(id).textContent = text; };
const tell = text => { show('say', text); };
function element(name, text, classes) {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (classes) e.className = classes;
    return e;
}
const size = n => n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} KB` : n < 1e9 ? `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} MB` : `${(n / 1e9).toFixed(1)} GB`;
const number = x => x === null ? 'not finite' : x === 0 ? '0' : Math.abs(x) < 1e-4 ? x.toExponential(1).replace('e-', ' · 10⁻')
    .replace(/⁻(\d+)$/, (all, n) => '⁻' + [...n].map(d => '⁰¹²³⁴⁵⁶⁷⁸⁹'[d]).join('')) : String(Number(x.toPrecision(3)));
const percent = x => x === null || x === undefined ? '–' : x >= 0.1 ? `${(100 * x).toFixed(0)} %` : `${Number((100 * x).toPrecision(2))} %`;
const count = (n, one, many = one + 's') => `${n} ${n === 1 ? one : many}`;

function fail(text, memory) {
    const full = /out of memory|exceeds the limit|too many (dimensions or )?elements/i.test(text) || memory > 3.9e9;
    const more = full ? ` The page gives ${MEMORY} GB to the values of a network, since a tab has at most 4 GB, of which ${size(memory || 0)}
        were in use: fewer or smaller inputs need less, and the program reluize has no such limit.` : '';
    show('trouble', text + (/[.!?]$/.test(text) ? '' : '.') + more);
    at('trouble').hidden = false;
    tell('');
}
const forgive = () => { at('trouble').hidden = true; show('trouble', ''); };

/* What the page has in an element: gzip as base64 */
async function unpack(id) {
    const packed = Uint8Array.from(atob(at(id).textContent.trim()), c => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

/* ---- the worker ---- */
async function load() {
    module = await WebAssembly.compile(await unpack('converter-module'));
}
function end_worker() {
    if (worker) worker.terminate();
    worker = null;
}
/* Sends a job to a new worker, so that its memory is free again after the last one. */
function ask(job, tells) {
    end_worker();
    const url = URL.createObjectURL(new Blob([at('worker').textContent], { type: 'text/javascript' }));
    const mine = worker = new Worker(url);
    URL.revokeObjectURL(url);
    return new Promise((done, failed) => {
        mine.onmessage = ({ data }) => {
            if (mine !== worker) return;
            if (data.tell) return tells(data.tell);
            end_worker();
            if (data.failed !== undefined) failed(Object.assign(new Error(data.failed), { memory: data.memory }));
            else done(data);
        };
        mine.onerror = event => {
            if (mine !== worker) return;
            end_worker();
            failed(new Error(event.message || 'the worker could not start'));
        };
        mine.postMessage(job);
    });
}
/* Runs a job and hands its answer on; what goes wrong is shown. */
async function work(job, answered, tells) {
    busy(true);
    try {
        answered(await ask(job, tells));
    } catch (error) {
        fail(error.message, error.memory);
    } finally {
        busy(false);
    }
}
/* The focus moves to the button that can be pressed next. */
function busy(is) {
    const here = document.activeElement, ids = ['go', 'relus', 'samples', 'pixels', 'example'];
    for (const id of ids) at(id).disabled = is || (id === 'go' && !(model && model.gates.some(g => g.kind === 'smooth')));
    for (const e of at('inputs').querySelectorAll('input')) e.disabled = is;
    at('cancel').disabled = !is;
    at('save').disabled = is || !made;
    at('save-inputs').disabled = is || !made || !made.made.length;
    at('converter').setAttribute('aria-busy', String(is));
    if (is && here === at('go')) at('cancel').focus();
    if (!is && (here === at('cancel') || here === document.body) && model) at(made ? 'save' : 'go').focus({ preventScroll: true });
    if (!is) show('node', '');
}

/* ---- opening ---- */
function forget_result() {
    made = null;
    rows = [];
    at('result').hidden = true;
    at('save').disabled = at('save-inputs').disabled = true;
    at('progress').value = 0;
    if (model) list_layers();
}
async function open(list) {
    const main = list.find(f => /\.onnx$/i.test(f.name)) || list[0];
    forgive();
    model = null;
    made = null;
    at('opened').hidden = at('layers-part').hidden = at('result').hidden = true;
    show('from', '');
    if (list.reduce((sum, f) => sum + f.size, 0) > LARGEST) {
        fail(`${main.name}: ${size(main.size)}; this page takes networks up to ${size(LARGEST)}, because a tab has at most 4 GB. The program reluize has no such limit`);
        return;
    }
    show_files('model', list);
    files = [main, ...list.filter(f => f !== main)].map(file => ({ name: file.name, file }));
    tell(`Reading ${main.name} …`);
    await work({ open: { module, files, memory: MEMORY } }, answer => {
        model = answer.model;
        show_model(main);
    });
}
function show_model(file) {
    const smooth = model.gates.filter(g => g.kind === 'smooth');
    chosen = model.inputs.map(() => ({ files: [], bytes: false }));
    curves = [];
    rows = [];
    show('network', file.name);
    show('about', `${size(file.size)}, ${count(model.nodes, 'node')}, opset ${model.opset}. ${count(smooth.length, 'smooth gate')} to replace` +
        (smooth.length ? `: ${[...new Set(smooth.map(g => g.function))].join('; ')}.` : '.'));
    list_inputs();
    list_layers();
    at('opened').hidden = at('layers-part').hidden = false;
    tell(smooth.length ? `${file.name} is open: ${count(smooth.length, 'smooth gate')} in ${count(model.nodes, 'node')}.`
        : `${file.name} has no smooth gate that ReLU can replace.`);
}

/* ---- inputs ---- */
/* Where channels, rows and columns of an image are, or null */
function image_of(input) {
    const [, a, b, c] = input.dim, colours = n => n === 1 || n === 3;
    if (input.dim.length !== 4 || input.type !== FLOAT) return null;
    if (colours(a)) return { channels: a, rows: b, columns: c, last: false, open: [2, 3] };
    return colours(c) ? { channels: c, rows: a, columns: b, last: true, open: [1, 2] } : null;
}
const is_image = file => /^image\//.test(file.type);
const KINDS = [
    { are: image_of, names: '.npy,.csv', images: true, text: 'a .npy array, a .csv table or images' },
    { are: input => input.vocabulary, names: '.npy,.txt', text: 'a .npy array or a .txt text' },
    { are: () => true, names: '.npy,.csv', text: 'a .npy array or a .csv table' }
];
const kind_of = input => KINDS.find(kind => kind.are(input));
const takes = (kind, file) => kind.images && is_image(file) || kind.names.split(',').some(end => file.name.toLowerCase().endsWith(end));
/* Whether an array has bytes, by the first lines of numpy's header */
async function has_bytes(file) {
    const head = new TextDecoder('latin1').decode(await file.slice(0, 1024).arrayBuffer());
    return head.startsWith('NUMPY', 1) && /'descr'\s*:\s*'[|<>=]?u1'/.test(head);
}
function shape_of(input) {
    return `(${input.dim.map((n, i) => n < 0 ? input.dim_name[i] || (i ? 'open' : 'samples') : n).join(', ')})`;
}
/* What an open dimension is drawn with, unless the reader says otherwise: dimensions of one name have one size */
const usual_size = input => image_of(input) ? 64 : input.vocabulary ? 32 : 16;
const of_name = name => input => input.dim_name.some((other, i) => i && other === name);
const open_size = (input, name) => Math.max(...(name ? model.inputs.filter(of_name(name)) : [input]).map(usual_size));
function set_size(changed) {
    for (const field of at('inputs').querySelectorAll('.sizes input'))
        if (changed.dataset.dimension && field.dataset.dimension === changed.dataset.dimension) field.value = changed.value;
    forget_result();
}

function list_inputs() {
    at('inputs').replaceChildren(...model.inputs.map((input, k) => {
        const row = element('div', undefined, 'input'), label = element('label'), file = element('input');
        label.htmlFor = file.id = `input-${k}`;
        label.append(element('b', input.name), ` ${TYPES[input.type] || 'another type'} ${shape_of(input)}`);
        file.type = 'file';
        file.multiple = true;
        file.accept = kind_of(input).names + (kind_of(input).images ? ',image/*' : '');
        file.addEventListener('change', () => choose(k, [...file.files]));
        const state = element('span', '', 'soft state');
        state.id = `state-${k}`;
        file.setAttribute('aria-describedby', state.id);
        row.append(label, file, state);
        const open = element('span', undefined, 'fields sizes');
        input.dim.forEach((n, i) => {
            if (n >= 0 || !i) return;
            const name = element('label', input.dim_name[i] || `dimension ${i + 1}`), field = element('input');
            field.type = 'number';
            field.min = 1;
            field.max = 4096;
            field.dataset.dimension = input.dim_name[i];
            field.value = open_size(input, input.dim_name[i]);
            name.htmlFor = field.id = `size-${k}-${i}`;
            field.addEventListener('change', () => set_size(field));
            open.append(name, field);
        });
        if (open.children.length) row.append(open);
        return row;
    }));
    show_inputs();
}
function state_of(k) {
    const { files: list, bytes } = chosen[k];
    if (!list.length) return 'no file: drawn at random';
    if (is_image(list[0])) return count(list.length, 'image');
    return bytes ? 'bytes' : '';
}
/* Shows files in a field as if they had been chosen there: those that were dropped, and the example's */
function show_files(id, list) {
    const data = new DataTransfer();
    for (const file of list) data.items.add(file);
    at(id).files = data.files;
}
function show_inputs() {
    const guesses = chosen.some(one => !one.files.length);
    chosen.forEach((one, k) => show(`state-${k}`, state_of(k)));
    at('guessing').hidden = !guesses;
    at('guess-fields').hidden = !guesses;
    at('pixel-fields').hidden = !model.inputs.some((input, k) => input.type === FLOAT && chosen[k].bytes);
}
/* Gives input k files. The field for pixels is shown for bytes and images; other values are used as they are. */
function choose(k, list) {
    const kind = kind_of(model.inputs[k]), good = list.filter(file => takes(kind, file));
    const images = kind.images ? good.filter(is_image) : [];
    if (!list.length) return;
    forgive();
    if (!good.length) {
        show_files(`input-${k}`, chosen[k].files);
        fail(`${list[0].name}: input '${model.inputs[k].name}' takes ${kind.text}`);
        return;
    }
    const one = chosen[k] = { files: images.length ? images : good.slice(0, 1), bytes: images.length > 0 };
    show_files(`input-${k}`, one.files);
    const reading = images.length ? Promise.resolve(true) : has_bytes(good[0]);
    one.ready = reading.then(bytes => {
        one.bytes = bytes;
        if (chosen[k] === one) show_inputs();
    });
    show_inputs();
    forget_result();
}
const field = (k, i) => { const e = at(`size-${k}-${i}`); return e ? Math.max(1, Math.round(Number(e.value)) || 1) : 0; };
/* What the worker makes input k of */
function source_of(input, k) {
    const list = chosen[k].files, plain = `input${model.inputs.length > 1 ? k + 1 : ''}.npy`;
    const sizes = input.dim.map((n, i) => n < 0 && i ? field(k, i) : n);
    if (!list.length) return { name: plain, guess: { samples: Math.max(10, Number(at('samples').value) || 256), sizes } };
    if (!is_image(list[0])) return { name: list[0].name, file: list[0], saved: chosen[k].saved };
    const image = image_of(input), [rows, columns] = image.open.map(i => sizes[i]);
    return { name: plain, images: { files: list, channels: image.channels, rows, columns, last: image.last } };
}

/* ---- gates and layers ---- */
const SVG = 'http://www.w3.org/2000/svg', WIDE = 96, HIGH = 56;
function svg(name, attributes) {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
}
/* The curve of a gate and of what takes its place */
function curve(gate, after) {
    const all = [...gate.curve, ...after || []].filter(v => v !== null), low = Math.min(-1, ...all), high = Math.max(1, ...all);
    const x = i => 2 + (WIDE - 4) * i / (gate.curve.length - 1), y = v => 2 + (HIGH - 4) * (high - v) / (high - low);
    const path = values => values.map((v, i) => v === null ? '' : `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ');
    const picture = svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, class: 'curve', role: 'img' });
    picture.setAttribute('aria-label', `${gate.function}${after ? ' and the ReLUs in its place' : ''}`);
    picture.append(svg('path', { class: 'axes', d: `M2 ${y(0).toFixed(1)}H${WIDE - 2}M${WIDE / 2} 2V${HIGH - 2}` }));
    if (after) picture.append(svg('polyline', { class: 'after', points: path(after) }));
    picture.append(svg('polyline', { class: 'before', points: path(gate.curve) }));
    return picture;
}
function gate_item(gate, after) {
    const item = element('li', undefined, 'gate'), text = element('div', undefined, 'what');
    if (gate.curve) item.append(curve(gate, after && after.curve));
    text.append(element('b', gate.function === 'unnamed' ? 'a gate' : gate.function), ' ', element('span', gate.name, 'name'));
    const why = after && after.why || gate.why;
    text.append(element('span', gate.kind === 'smooth' || after && after.relus
        ? after ? after.relus ? `${count(after.relus, 'ReLU')}, ${percent(after.error)} away from it on the inputs` : `stays${why ? ': ' + why : ''}` : 'to be replaced'
        : gate.kind === 'stays' ? `stays${why ? ': ' + why : ''}` : 'stays: it is piecewise linear', 'soft'));
    item.append(text);
    return item;
}
function change_of(text, value) {
    const part = element('div', undefined, 'change');
    part.append(element('span', text, 'soft'), element('b', percent(value)));
    const bar = element('span', undefined, 'bar');
    bar.style.setProperty('--part', value === null || value === undefined ? 0 : Math.min(1, value));
    part.append(bar);
    return part;
}
const OUTCOMES = ['solved for again', 'its biases were corrected', 'kept as it was', 'left as it was'];
function layer_item(row) {
    const item = element('li', undefined, 'layer'), text = element('div', undefined, 'what');
    text.append(element('b', row.op), ' ', element('span', row.name, 'name'));
    text.append(element('span', row.refitted === undefined ? 'waits' : OUTCOMES[row.outcome] + (row.why ? `: ${row.why}` : ''), 'soft'));
    item.append(text, change_of('cold swap', row.cold), change_of('refit', row.refitted));
    return item;
}
function list_layers() {
    const all = [
        ...model.gates.filter(g => g.kind !== 'relu').map(gate => ({ node: gate.node, gate, k: model.gates.indexOf(gate) })),
        ...rows.map(row => ({ node: row.node, row }))
    ].sort((a, b) => a.node - b.node);
    at('layers').replaceChildren(...all.map(one => {
        const item = one.gate ? gate_item(one.gate, curves[one.k]) : layer_item(one.row);
        if (one.row) one.row.item = item;
        return item;
    }));
}
/* The bar never goes back: several refits are tried, one after another. */
function advance(to) {
    const bar = at('progress');
    bar.value = Math.max(bar.value, to);
}
function told(news) {
    if (news.progress) {
        const { done, key, what } = news.progress;
        advance(key === 'cold' ? 0.1 * done : 0.1 + 0.8 * done);
        show('node', what);
    } else if (news.stage) {
        tell({ reading: 'Reading the inputs …', converting: 'Converting …', measuring: 'Measuring the files that were made …' }[news.stage]);
        if (news.stage === 'measuring') advance(0.9);
    } else if (news.layers) {
        rows = news.layers;
        list_layers();
    } else if (news.change) {
        const { key, layer, value, outcome, why } = news.change, row = rows[layer];
        if (!row) return;
        row[key] = value;
        row.outcome = outcome;
        row.why = why;
        const item = layer_item(row);
        row.item.replaceWith(item);
        row.item = item;
    } else if (news.gates) {
        curves = news.gates;
        list_layers();
    }
}

/* ---- conversion ---- */
const quoted = text => /^[\w./+-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
function command(job) {
    const pixels = !at('pixel-fields').hidden ? ' ' + PIXELS[at('pixels').value].words : '';
    const data = job.inputs.map((input, k) => ` --data ${quoted(job.inputs.length > 1 ? `${model.inputs[k].name}=${input.name}` : input.name)}`);
    return `reluize ${quoted(files[0].name)}${data.join('')} --relus ${job.relus} --memory ${job.memory}${pixels} -o ${quoted(out_name())}`;
}
const out_name = () => files[0].name.replace(/(\.onnx)?$/i, '.relu.onnx');
function show_ways(report) {
    const names = {
        cold: report.relus > 1 ? 'Fitted ReLUs' : 'Cold swap', biases: 'Biases corrected', refitted: 'Refitted',
        refitted_1: 'Refitted, weights held back', refitted_10: 'Refitted, weights held back more', kinks: 'Fitted ReLUs',
        kinks_refitted: 'Fitted ReLUs, refitted', kinks_refitted_1: 'Fitted ReLUs, refitted, weights held back',
        kinks_refitted_10: 'Fitted ReLUs, refitted, weights held back more'
    };
    const ways = Object.keys(names).filter(key => report[key]).map(key => [key, report[key]]);
    const classes = ways.some(([, m]) => m.divergence > 0 || m.flips > 0);
    at('flips-head').hidden = !classes;
    show('ways-about', `Change from the original on ${count(report.test_samples, 'sample')} that the conversion did not use` +
        (classes ? '; flips are predictions that changed' : ''));
    at('ways').replaceChildren(...ways.map(([key, m]) => {
        const line = element('tr'), head = element('th', names[key] + (key === report.written ? ', to be saved' : ''));
        head.scope = 'row';
        line.append(head);
        if (classes) line.append(element('td', `${m.flips} of ${m.rows}`));
        line.append(element('td', number(m.mean_dlogit)), element('td', number(m.max_dlogit)));
        return line;
    }));
    at('notes').replaceChildren(...report.notes.map(note => element('li', note)));
    at('result').hidden = false;
}
async function convert() {
    await Promise.all(chosen.map(one => one.ready));
    forgive();
    curves = [];
    rows = [];
    forget_result();
    const job = { module, files, inputs: model.inputs.map(source_of), relus: Number(at('relus').value), memory: MEMORY,
        scale: at('pixel-fields').hidden ? [] : PIXELS[at('pixels').value].scale };
    const names = job.inputs.map(input => input.name);
    names.forEach((name, k) => { if (names.indexOf(name) < k) job.inputs[k].name = `${k + 1}-${name}`; });
    const text = command(job), started = performance.now();
    await work({ convert: job }, answer => {
        made = answer.done;
        advance(1);
        show_ways(made.report);
        show('command-about', `The same bytes on a command line${made.made.length ? ', with the saved inputs' : ''}:`);
        show('command', text);
        show('copied', '');
        tell(`Converted in ${((performance.now() - started) / 1000).toFixed(1)} s with ${size(made.memory)} of memory. ${out_name()}: ${size(made.file.size)}.`);
    }, told);
}
/* Opens the sample network with its images, and converts it. */
async function example() {
    const name = 'cnn_silu.onnx';
    await open([new File([await unpack('sample-network')], name)]);
    if (!model) return;
    choose(0, [new File([await unpack('sample-images')], 'images.npy')]);
    chosen[0].saved = true;
    show('from', 'This residual network with SiLU tells ten kinds of small drawings from each other; it is in the folder examples/sample of the repository.');
    at('relus').value = 1;
    show('relus-is', '1');
    at('pixels').value = 'unit';
    await convert();
}
function cancel() {
    end_worker();
    busy(false);
    if (model) forget_result();
    tell('Cancelled. Nothing was made.');
}
/* Without the clipboard's interface, which a page has by https or from a disk alone, the selected text is copied. */
async function copy() {
    const range = document.createRange(), selection = getSelection();
    try {
        await navigator.clipboard.writeText(at('command').textContent);
        show('copied', 'Copied.');
    } catch (error) {
        range.selectNodeContents(at('command'));
        selection.removeAllRanges();
        selection.addRange(range);
        show('copied', document.execCommand('copy') ? 'Copied.' : 'The command is selected: copy it with the keyboard.');
    }
}
function save(name, blob) {
    const link = element('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/* ---- what is dropped or chosen ---- */
function take(list) {
    if (!list.length) return;
    if (list.some(f => /\.onnx$/i.test(f.name)) || !model) return void open(list);
    const pictures = list.filter(is_image), images = Math.max(0, model.inputs.findIndex(image_of));
    choose(images, pictures);
    for (const f of list.filter(one => !is_image(one))) {
        const stem = f.name.replace(/\.[^.]*$/, ''), named = model.inputs.findIndex(input => input.name === stem);
        const free = chosen.findIndex(one => !one.files.length);
        choose(named >= 0 ? named : Math.max(0, free), [f]);
    }
}
function begin() {
    at('model').addEventListener('change', () => { if (at('model').files.length) open([...at('model').files]); });
    at('go').addEventListener('click', convert);
    at('example').addEventListener('click', example);
    at('copy').addEventListener('click', copy);
    at('cancel').addEventListener('click', cancel);
    at('save').addEventListener('click', () => save(out_name(), made.file));
    at('save-inputs').addEventListener('click', () => made.made.forEach(one => save(one.name, one.file)));
    at('relus').addEventListener('input', () => { show('relus-is', at('relus').value); });
    for (const id of ['relus', 'samples', 'pixels']) at(id).addEventListener('change', () => { curves = []; forget_result(); });
    document.addEventListener('dragover', event => { event.preventDefault(); document.body.classList.add('dragging'); });
    document.addEventListener('dragleave', event => { if (!event.relatedTarget) document.body.classList.remove('dragging'); });
    document.addEventListener('drop', event => {
        event.preventDefault();
        document.body.classList.remove('dragging');
        if (!worker) take([...event.dataTransfer.files]);
    });
}
load().then(begin).then(() => { document.documentElement.dataset.converter = 'ready'; }, error => fail(`This browser cannot start the converter: ${error.message}`));
