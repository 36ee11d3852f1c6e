import { expect, onTestFinished, test, vi } from 'vitest';
import { startFakeAnthropic, startFakeOpenAi } from '../../packages/testing/src/index.ts';
import { decide, mailer, requestIn } from '../support/approvals.ts';
import { ANA } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';

interface Sent {
  messages: { role: string; content: unknown; tool_calls?: { id: string }[]; tool_call_id?: string }[];
}

test('in the resumed turn Anthropic gets the approved call paired with its result', async () => {
  vi.stubEnv('TROUPE_TEST_KEY', 'k');
  onTestFinished(() => void vi.unstubAllEnvs());
  await using server = await startFakeAnthropic(({ number }) =>
    number === 1 ? { calls: [{ name: 'mail', args: '{"to":"eve"}' }] } : { text: 'sent' },
  );
  const { sent, mail } = mailer();
  await using troupe = await openTroupe({
    agents: [
      {
        id: 'bo',
        provider: 'anthropic',
        model: 'm',
        baseUrl: server.url,
        apiKeyEnv: 'TROUPE_TEST_KEY',
        contextWindow: 200_000,
        tools: ['mail'],
      } as never,
    ],
    tools: [mail],
  });
  await troupe.send('c', { author: ANA, content: 'write to eve', to: ['bo'] });
  await troupe.idle();
  const request = await requestIn(troupe);
  await decide(troupe, request, true);
  await troupe.idle();
  expect(sent).toEqual(['eve']);
  const [, resumed] = server.requests.map(({ body }) => body as Sent);
  const messages = resumed?.messages ?? [];
  const blocks = messages.map(({ role, content }) => ({
    role,
    parts: (Array.isArray(content) ? content : [{ type: 'text', text: content }]) as Record<
      string,
      unknown
    >[],
  }));
  // Roles alternate. The results of a message's calls open the next message, each once.
  for (const [index, { role, parts }] of blocks.entries()) {
    expect(role).toBe(index % 2 === 0 ? 'user' : 'assistant');
    const calls = parts.flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []));
    const results = (blocks[index + 1]?.parts ?? []).flatMap((part) =>
      part['type'] === 'tool_result' ? [part['tool_use_id']] : [],
    );
    expect(results).toEqual(calls);
  }
  expect(blocks.at(-2)?.parts).toMatchObject([
    { type: 'tool_use', id: request, name: 'mail', input: { to: 'eve' } },
  ]);
  expect(JSON.stringify(blocks.at(-1)?.parts)).toContain('sent to eve');
});

test('in the resumed turn an OpenAI-compatible model gets the approved call paired with its result', async () => {
  await using server = await startFakeOpenAi(({ number }) =>
    number === 1 ? { calls: [{ name: 'mail', args: '{"to":"eve"}' }] } : { text: 'sent' },
  );
  const { sent, mail } = mailer();
  await using troupe = await openTroupe({
    agents: [
      {
        id: 'bo',
        provider: 'openai-compatible',
        baseUrl: server.url,
        contextWindow: 100_000,
        tools: ['mail'],
      },
    ],
    tools: [mail],
  });
  await troupe.send('c', { author: ANA, content: 'write to eve', to: ['bo'] });
  await troupe.idle();
  const request = await requestIn(troupe);
  await decide(troupe, request, true);
  await troupe.idle();
  expect(sent).toEqual(['eve']);
  const [, resumed] = server.requests.map(({ body }) => body as Sent);
  const messages = resumed?.messages ?? [];
  const open = new Set<string>();
  for (const { role, tool_calls, tool_call_id } of messages) {
    if (role === 'tool') expect(open.delete(tool_call_id ?? '')).toBe(true);
    else expect([...open]).toEqual([]);
    for (const { id } of tool_calls ?? []) open.add(id);
  }
  expect([...open]).toEqual([]);
  expect(messages.at(-2)?.tool_calls).toMatchObject([{ id: request, function: { name: 'mail' } }]);
  expect(messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: request, content: 'sent to eve' });
});
