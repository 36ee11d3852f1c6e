import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Puts the one encoding that Troupe counts with into `dist`, beside the module that loads it. The whole tokenizer, with
 * every encoding in three formats, is fifteen times as large.
 */
const ENCODING = 'gpt-tokenizer/encoding/o200k_base';
const ROOT = path.dirname(import.meta.dirname);
const DIST = path.join(ROOT, 'dist/context');

const bundle = await rolldown({ input: ENCODING, cwd: ROOT, platform: 'node', logLevel: 'silent' });
await bundle.write({ file: path.join(DIST, 'o200k_base.js'), format: 'esm', minify: true });
await bundle.close();
copyFileSync(path.join(ROOT, 'node_modules/gpt-tokenizer/LICENSE'), path.join(DIST, 'o200k_base.LICENSE'));

const user = path.join(DIST, 'tokens.js');
const written = readFileSync(user, 'utf8');
const redirected = written.replaceAll(`'${ENCODING}'`, "'./o200k_base.js'");
// The loader names it twice: with `import` and with `require`.
if (written.split(`'${ENCODING}'`).length !== 3) throw new Error(`${user} does not load ${ENCODING} twice`);
writeFileSync(user, redirected);
