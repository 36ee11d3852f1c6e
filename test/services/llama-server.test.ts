import { expect, test } from 'vitest';
import { describeLlama, installLlama, LLAMA_ENV } from './llama-server.ts';

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
