import { expect, test } from 'vitest';
import { openTroupe } from '../support/mode.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const COMPANY = {
  agents: [{ id: 'p', provider: 'scripted' as const, script: { rules: [{ reply: 'here' }] } }],
};

test.each(['room:p:1:reply', 'room:p:1:started', 'room:p:1:end', 'baseline:p:1', 'joined:p', 'failed:p:1'])(
  'an id that the runtime will need is refused, and the agent continues: %s',
  async (id) => {
    await using troupe = await openTroupe(COMPANY);
    await expect(
      troupe.send('room', { id: id as never, author: ANA, content: 'squat' }),
    ).rejects.toMatchObject({
      code: 'event_conflict',
    });
    await troupe.send('room', { author: ANA, content: 'hello', to: ['p'] });
    await troupe.idle();
    const { events } = await troupe.events('room');
    expect(events.filter(({ kind }) => kind === 'turn.done')).toHaveLength(1);
  },
);

test('F2 our own reply, echoed back by a gateway, stays one event', async () => {
  await using troupe = await openTroupe(COMPANY);
  await troupe.send('room', { author: ANA, content: 'hello', to: ['p'] });
  await troupe.idle();
  const before = await troupe.events('room');
  const reply = before.events.find(({ kind, author }) => kind === 'message' && author.id === 'p');
  const echo = await troupe.send('room', {
    id: reply?.id,
    author: { kind: 'agent', id: 'p', name: 'p' },
    content: 'here',
  });
  expect(echo.kind).toBe('exists');
  expect(await troupe.events('room')).toEqual(before);
  // Other content under that id is no echo.
  const p = { kind: 'agent', id: 'p', name: 'p' } as const;
  const text = { mediaType: 'text/plain', data: Buffer.from('x') };
  for (const other of [
    { author: ANA, content: 'here' },
    { author: p, content: 'elsewhere' },
    { author: p, content: 'here', attachments: [text] },
  ])
    await expect(troupe.send('room', { id: reply?.id, ...other })).rejects.toMatchObject({
      code: 'event_conflict',
    });
  expect(await troupe.events('room')).toEqual(before);
});
