import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { ANA, ECHO, scripted } from '../http/harness.ts';
import { openTroupe } from '../support/mode.ts';

const QUIET = { onWarning: () => {} };

test('tenants share agents and nothing else, under the same names', async () => {
  await using troupe = await openTroupe({ agents: [ECHO] }, QUIET);
  const acme = troupe.forTenant('acme');
  const zeta = troupe.forTenant('zeta');
  const seen: Event[] = [];
  const off = acme.watch((note) => note.type === 'event' && seen.push(note.event));
  await acme.send('plan', { id: 'one' as Event['id'], author: ANA, to: ['echo'], content: 'of acme' });
  await zeta.send('plan', { id: 'one' as Event['id'], author: ANA, to: ['echo'], content: 'of zeta' });
  await troupe.idle();
  off();
  const [mine, theirs] = await Promise.all([acme.events('plan'), zeta.events('plan')]);
  expect(JSON.stringify(mine)).toContain('of acme');
  expect(JSON.stringify(mine)).not.toContain('of zeta');
  expect(JSON.stringify(theirs)).not.toContain('of acme');
  expect(mine.events.map(({ kind }) => kind)).toContain('turn.done');
  expect(new Set(seen.map(({ tenant }) => tenant))).toEqual(new Set(['acme']));
  expect(await troupe.conversations()).toEqual([]);
  await expect(troupe.events('plan')).rejects.toMatchObject({ code: 'conversation_unknown' });
  const prompt = await acme.prompt('plan', 'echo');
  expect(JSON.stringify(prompt)).not.toContain('of zeta');
});

test('a turn of another tenant is as unknown as an invalid id', async () => {
  await using troupe = await openTroupe({ agents: [ECHO] }, QUIET);
  const acme = troupe.forTenant('acme');
  await acme.send('plan', { author: ANA, to: ['echo'], content: 'hello' });
  await troupe.idle();
  const turn = (await acme.events('plan')).events.find(({ kind }) => kind === 'turn.done')?.turn ?? '';
  expect(await acme.trace(turn)).toMatchObject({ turn });
  const other = troupe.forTenant('zeta');
  for (const ask of [
    () => other.trace(turn),
    () => other.promptOf(turn),
    () => other.command({ command: 'retry', turn: turn as never }, ANA),
  ]) {
    await expect(ask()).rejects.toMatchObject({ code: expect.stringMatching(/_unknown$/) });
  }
});

test('an invalid id names no tenant', async () => {
  await using troupe = await openTroupe({ agents: [ECHO] }, QUIET);
  for (const name of ['', '-', 'a/b', '../x', 'x'.repeat(129), '__proto__']) {
    expect(() => troupe.forTenant(name)).toThrow(expect.objectContaining({ code: 'event_invalid' }));
  }
});

test('untrusted messages of a gateway wake no agent until they are passed on', async () => {
  await using troupe = await openTroupe({ agents: [scripted('echo', [{ reply: 'heard' }])] }, QUIET);
  const { event } = await troupe.send('plan', {
    author: ANA,
    to: ['echo'],
    content: 'psst',
    untrusted: true,
  });
  await troupe.idle();
  expect(event).toMatchObject({ to: [], context: { held: ['echo'] } });
  expect((await troupe.events('plan')).head).toBe(1);
  await troupe.command({ command: 'dispatch', conversation: event.conversation, event: event.id }, ANA);
  await troupe.idle();
  expect((await troupe.events('plan')).events.map(({ kind }) => kind)).toContain('turn.done');
});
