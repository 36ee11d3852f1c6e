import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { describeLlama, installLlama, LLAMA_ENV, whyNoToken } from './llama-server.ts';
import { lacksPart } from './unusable.ts';

test('a real model is not fetched where that is switched off, and the line of the run says so', async () => {
  const llama = await installLlama({ TROUPE_TEST_LLAMA: 'none' });
  expect(describeLlama(llama)).toBe('real model: none (TROUPE_TEST_LLAMA: none)');
});

test('a real model found once is passed on, and so is the reason why there is none', async () => {
  for (const found of [{ command: '/bin/llama-server', model: '/m.gguf' }, { not: 'no pip' }])
    expect(await installLlama({ [LLAMA_ENV]: JSON.stringify(found), TROUPE_TEST_LLAMA: 'none' })).toEqual(
      found,
    );
});

test('a server that dies while it loads its model is not used, and its tests are skipped with the signal, in CI too', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-llama-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const command = path.join(folder, 'llama-server');
  writeFileSync(command, '#!/bin/sh\necho "llama threadpool init, n_threads = 2"\nkill -ILL $$\n', {
    mode: 0o755,
  });
  const reason = await whyNoToken({ command, model: 'model.gguf' });
  expect(reason).toBe(`does not run here: ${command} ended at once: SIGILL`);
  expect(lacksPart(`a reply streams (skipped: no real model (${reason}))`)).toBe(false);
});

test('in CI a part that is missing is a failure', () => {
  expect(lacksPart('a reply streams (skipped: no real model (no pip))')).toBe(true);
  expect(lacksPart('a reply streams')).toBe(false);
});
