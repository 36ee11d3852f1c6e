import { expect, test } from 'vitest';
import { type Company, company, ROOM, UMA } from '../support/company.ts';

const AGENTS = { boss: { tools: ['delegate'] } };

/** A conversation in which @w is paused and asked to compact. */
async function openRoom(): Promise<Company> {
  const opened = await company(['boss', 'w'], { agents: AGENTS });
  await opened.say(UMA, ['boss', 'w'], 'hi');
  for (const command of ['pause', 'compact'] as const)
    await opened.troupe.command({ command, conversation: ROOM, agent: 'w' }, UMA);
  return opened;
}

async function toldIn(conversation: string, room: Company): Promise<string> {
  await room.troupe.send(conversation, { author: UMA, to: ['boss'], content: 'who is here?' });
  await room.troupe.idle();
  return JSON.stringify(room.raw('boss'));
}

const NOTHING_UNDER_WAY = { running: [], requested: [] };

test('in the original the pause is told, and the request to compact waits', async () => {
  await using original = await openRoom();
  expect(await toldIn(ROOM, original)).toContain('unavailable: @w is paused');
  expect((await original.troupe.state(ROOM)).compactions).toMatchObject({ requested: ['w'] });
});

test('agents begin anew in a fork: nobody is paused there, and nothing is asked of them', async () => {
  await using original = await openRoom();
  const { head } = await original.troupe.state(ROOM);
  await original.troupe.command({ command: 'fork', conversation: ROOM, seq: head, as: 'fork' }, UMA);
  expect(await toldIn('fork', original)).not.toContain('@w is paused');
  expect((await original.troupe.state('fork')).compactions).toMatchObject(NOTHING_UNDER_WAY);
  await original.troupe.send('fork', { author: UMA, to: ['w'], content: 'go on' });
  await original.troupe.idle();
  const { events } = await original.troupe.events('fork');
  expect(events.filter(({ kind }) => kind === 'compaction.progress')).toEqual([]);
  expect(events.at(-1)).toMatchObject({ kind: 'turn.done', author: { id: 'w' } });
});

test('pauses and requests to compact of an imported conversation were for agents elsewhere', async () => {
  await using original = await openRoom();
  await using other = await company(['boss', 'w'], { agents: AGENTS });
  await other.troupe.import(original.troupe.export(ROOM), { format: 'troupe', conversation: 'copy' });
  expect(await toldIn('copy', other)).not.toContain('@w is paused');
  expect((await other.troupe.state('copy')).compactions).toMatchObject(NOTHING_UNDER_WAY);
});
