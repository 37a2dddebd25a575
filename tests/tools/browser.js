/* SPDX-License-Identifier: MIT-0
   browser.js: headless Chromium by chromedriver, as the tests of the page use it. driver(...) takes further arguments of Chromium. */
'use strict';
const sleep = ms => new Promise(done => setTimeout(done, ms));
async function driver(...more) {
    const { spawn } = require('child_process');
    const child = spawn(process.env.CHROMEDRIVER || 'chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    process.on('exit', () => child.kill());
    const port = await new Promise((found, lost) => {
        let text = '';
        child.stdout.on('data', data => {
            const m = (text += data).match(/started successfully on port (\d+)/);
            if (m) found(m[1]);
        });
        child.on('exit', () => lost(new Error(`chromedriver ended: ${text}`)));
    });
    const ask = async (method, where, body) => {
        const answer = await fetch(`http://127.0.0.1:${port}${where}`, { method, body: body && JSON.stringify(body) });
        const { value } = await answer.json();
        if (value && value.error) throw new Error(`${where}: ${value.message}`);
        return value;
    };
    const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-device-scale-factor=1', ...more];
    const { sessionId } = await ask('POST', '/session', { capabilities: { alwaysMatch: {
        browserName: 'chrome', 'goog:chromeOptions': { args }, 'goog:loggingPrefs': { browser: 'ALL' } } } });
    const post = (where, body) => ask('POST', `/session/${sessionId}${where}`, body);
    return {
        go: url => post('/url', { url }),
        run: (script, ...values) => post('/execute/sync', { script, args: values }),
        cdp: (cmd, params) => post('/goog/cdp/execute', { cmd, params }),
        /* Chooses files by an <input type=file>, in place of those before. */
        async choose(id, ...files) {
            await post('/execute/sync', { script: 'document.getElementById(arguments[0]).value = ""', args: [id] });
            const found = await post('/element', { using: 'css selector', value: `#${id}` });
            await post(`/element/${Object.values(found)[0]}/value`, { text: files.join('\n') });
        },
        log: () => post('/se/log', { type: 'browser' }),
        keys: text => post('/actions', { actions: [{ type: 'key', id: 'keys',
            actions: [...text].flatMap(value => [{ type: 'keyDown', value }, { type: 'keyUp', value }]) }] }),
        async end() { await ask('DELETE', `/session/${sessionId}`); child.kill(); }
    };
}
const KEY = { tab: '\uE004', right: '\uE014', home: '\uE011', end: '\uE010', space: ' ', enter: '\uE007' };
module.exports = { driver, KEY, sleep };
