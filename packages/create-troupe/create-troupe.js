#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

// `npm create troupe my-app` is `troupe init my-app` with the Troupe of the same version, which npm fetches.
const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const args = ['exec', '--yes', '--', `troupe@^${version}`, 'init', ...process.argv.slice(2)];
// npm names its own script here; on Windows the command `npm` cannot be started without a shell.
const npm = process.env['npm_execpath'];
const { status, error } = npm?.endsWith('.js')
  ? spawnSync(process.execPath, [npm, ...args], { stdio: 'inherit' })
  : spawnSync('npm', args, { stdio: 'inherit' });
if (error) console.error(`create-troupe: npm cannot be started (${error.message}); run: npx troupe init`);
process.exitCode = status ?? 1;
