import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = path.dirname(import.meta.dirname);

/** Opens a company, lets it take a turn, and prints the address of every module that was loaded for it. */
const TURN = `
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
const { createTroupe } = await import('./src/index.ts');
const agents = [{ id: 'ada', provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } }];
const troupe = await createTroupe({ agents }, { data: ':memory:' });
const { text } = await troupe.ask('c', { to: ['ada'], content: 'Hello' });
await troupe.close();
console.log(JSON.stringify({ text, loaded }));
`;

test('a company that takes a turn loads neither the API nor the adapters and packages of what it does not use', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', TURN], {
    cwd: ROOT,
    maxBuffer: 16 * 1_024 * 1_024,
  });
  const { text, loaded } = JSON.parse(stdout) as { text: string; loaded: string[] };
  expect(text).toBe('Hi');
  const packages = loaded.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? []);
  expect([...new Set(packages)].toSorted()).toEqual([
    'croner',
    'gpt-tokenizer',
    'lru-cache',
    'ulid',
    'unhomoglyph',
    'xstate',
    'zod',
  ]);
  const own = loaded.flatMap((url) => url.split(`${ROOT}/src/`)[1] ?? []);
  expect(own.filter((file) => /^(?:http|cli|acp|mcp-server|evals|testing)\//.test(file))).toEqual([]);
  expect(own.filter((file) => /^(?:store\/mongo|queue\/(?:bullmq|redis))\//.test(file))).toEqual([]);
  expect(loaded.filter((url) => url.startsWith(`file://${ROOT}/packages/`))).toEqual([]);
  const adapters = /^providers\/(?:anthropic|openai\/openai|ai-sdk\/|claude-code|codex|a2a\/a2a)/;
  expect(own.filter((file) => adapters.test(file))).toEqual([]);
});

const SERVE = `
const { createApp, createTroupe } = await import('./src/index.ts');
const troupe = await createTroupe({ agents: [{ id: 'ada', provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } }] }, { data: ':memory:' });
const app = createApp(troupe);
const { status } = await app.fetch(new Request('http://127.0.0.1/api/conversations/none/events'));
const http = await import('./src/http/api/index.ts');
console.log(JSON.stringify({ status, isOne: app.constructor === http.createApp(troupe).constructor }));
await troupe.close();
`;

test('createApp of the main entry is that of troupe/http, loaded when it is first used', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', SERVE], {
    cwd: ROOT,
  });
  expect(JSON.parse(stdout)).toEqual({ status: 404, isOne: true });
});
