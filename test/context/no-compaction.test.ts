import { expect, test } from 'vitest';
import { createTroupe } from '../../src/index.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';

const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;

/** Sends long messages to an agent with a small window. Returns how each turn ended, and the kinds of events. */
async function filled(context: NonNullable<TroupeInput['context']>) {
  const bo = {
    id: 'bo',
    name: 'Bo',
    provider: 'scripted',
    model: 'test',
    contextWindow: 8_000,
    script: { rules: [{ reply: 'noted' }] },
  } as const;
  const troupe = await createTroupe({ agents: [bo], context }, { onWarning: () => {} });
  for (let n = 1; n <= 8; n++) {
    await troupe.send('c', { author: ANA, to: ['bo'], content: `${n} ${'a word of many '.repeat(300)}` });
    await troupe.idle();
  }
  const { events } = await troupe.events('c');
  return {
    troupe,
    events,
    compactions: events.filter(({ kind }) => kind === 'compaction' || kind === 'prune'),
  };
}

test('without compaction an agent is sent everything, and a turn that no longer fits fails and says why', async () => {
  const { troupe, events, compactions } = await filled({ compaction: false });
  await using _ = troupe;
  expect(compactions).toEqual([]);
  const failed = events.flatMap((event) => (event.kind === 'turn.failed' ? [event.body] : []));
  expect(failed[0]).toMatchObject({ code: 'context_overflow' });
  expect(failed[0]?.message).toContain('context.compaction');
  const done = events.filter(({ kind }) => kind === 'turn.done').length;
  const { messages } = await troupe.promptOf(`c:bo:${done}`);
  const words = messages.map(({ content }) => content).join('\n');
  for (let n = 1; n <= done; n++) expect(words).toContain(`${n} a word`);
  await expect(
    troupe.command({ command: 'compact', conversation: 'c', agent: 'bo' }, ANA),
  ).rejects.toMatchObject({
    code: 'command_refused',
  });
});

test('with it, no turn fails', async () => {
  const { troupe, events, compactions } = await filled({});
  await using _ = troupe;
  expect(compactions.length).toBeGreaterThan(0);
  expect(events.filter(({ kind }) => kind === 'turn.failed')).toEqual([]);
});
