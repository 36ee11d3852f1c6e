import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { startFakeOpenAi } from '../../packages/testing/src/index.ts';
import { openTroupe } from '../support/mode.ts';

interface ChatBody {
  messages: { role: string; content: string; tool_call_id?: string; tool_calls?: { id: string }[] }[];
}

test('two calls of one step with the same vendor id both keep their results, in order', async () => {
  const echo = defineTool({
    name: 'echo',
    description: 'Says it again.',
    schema: z.object({ text: z.string() }),
    run: ({ text }) => `heard ${text}`,
  });
  const call = (text: string) => ({ id: 'call_0', name: 'echo', args: JSON.stringify({ text }) });
  await using server = await startFakeOpenAi(({ number }) =>
    number === 1 ? { calls: [call('one'), call('two')] } : { text: 'both heard' },
  );
  await using troupe = await openTroupe({
    agents: [{ id: 'p', provider: 'openai-compatible', baseUrl: server.url, tools: ['echo'] }],
    tools: [echo],
  });
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  await troupe.send('c', { author, content: 'Go.', to: ['p'] });
  await troupe.idle();
  const asked = { method: 'POST', path: '/v1/chat/completions', body: { messages: expect.any(Array) } };
  expect(server.requests).toMatchObject([asked, asked]);
  const [, { body }] = server.requests as [unknown, { body: ChatBody }];
  const { messages } = body;
  const ids = messages.flatMap(({ tool_calls: calls }) => calls?.map(({ id }) => id) ?? []);
  const results = messages.filter(({ role }) => role === 'tool');
  expect(new Set(ids).size).toBe(2);
  expect(results.map(({ tool_call_id: id }) => id)).toEqual(ids);
  expect(results.map(({ content }) => content)).toEqual(['heard one', 'heard two']);
});
