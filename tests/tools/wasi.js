/* SPDX-License-Identifier: MIT-0
   wasi.js: node wasi.js MODULE ARGUMENTS: runs a program compiled for WASI, which sees the files from here on down */
'use strict';
const { WASI } = require('wasi'), fs = require('fs');
const wasi = new WASI({ version: 'preview1', args: process.argv.slice(2), preopens: { '.': '.' } });
const code = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const instance = new WebAssembly.Instance(code, { wasi_snapshot_preview1: wasi.wasiImport });
process.exitCode = wasi.start(instance) || 0;
