import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { openTroupe } from '../support/mode.ts';

const script = { rules: [{ reply: 'hi' }] };
const bo = { id: 'bo' as never, provider: 'scripted' as const, script };
const tool = (name: string) => defineTool({ name, description: '', schema: z.object({}), run: () => '' });

test('a listener for warnings that throws does no harm', async () => {
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const onWarning = () => {
    throw new Error('the log is full');
  };
  // The window of its model is not known.
  const server = { provider: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' } as const;
  const agent = { id: 'bo' as never, model: 'home-brew', ...server };
  await using troupe = await openTroupe({ agents: [agent] }, { onWarning });
  expect(troupe.agents).toHaveLength(1);
  expect(warned).toHaveBeenCalledWith('troupe: onWarning: the log is full');
  warned.mockRestore();
});

test('an invalid concurrency is refused as a configuration error', async () => {
  await expect(openTroupe({ agents: [bo] }, { concurrency: 0 })).rejects.toMatchObject({
    code: 'config_invalid',
  });
});

test.each([
  ['two tools of one name', [tool('look'), tool('look')]],
  ['a tool with the name of a builtin one', [tool('handoff')]],
  ['another with such a name', [tool('delegate')]],
])('%s are refused, since only one could be meant', async (_, tools) => {
  await expect(openTroupe({ agents: [bo], tools })).rejects.toMatchObject({ code: 'config_invalid' });
});
