import { expect, test } from 'vitest';
import type { ImportReport } from '../../src/library/import/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { company, ROOM, UMA } from '../support/company.ts';

function said(role: 'user' | 'assistant', text: string, id: string) {
  return JSON.stringify({ type: 'message', id, message: { role, content: text } });
}

const LONG = 'The deployment goes to the cluster in Oslo at noon. '.repeat(40);

/** A session whose program summarised its beginning. */
const SESSION = [
  JSON.stringify({ type: 'session', id: 's' }),
  said('user', 'Ship version 2.4 by Friday, and never on a Sunday.', 'a'),
  ...Array.from({ length: 20 }, (_, at) => said('assistant', `${at}: ${LONG}`, `b${at}`)),
  JSON.stringify({
    type: 'compaction',
    id: 'c',
    summary: 'Deployments go to Oslo.',
    firstKeptEntryId: 'b19',
  }),
  said('user', 'Go on.', 'd'),
].join('\n');

function importInto(troupe: Troupe, text = SESSION): Promise<ImportReport> {
  return troupe.import(ReadableStream.from([text]), { conversation: ROOM });
}

test('an imported summary is a compaction, with the words of people that it covers', async () => {
  await using room = await company(['p']);
  const report = await importInto(room.troupe);
  expect(report.kinds).toEqual({ message: 22, compaction: 1 });
  const { events } = await room.troupe.events(ROOM);
  expect(events[21]).toMatchObject({
    kind: 'compaction',
    id: 'compaction:1',
    body: { number: 1, upTo: 20, strategy: 'summary', by: 'assistant', summary: 'Deployments go to Oslo.' },
  });
  expect(JSON.stringify(events[21]?.body)).toContain('never on a Sunday');
});

test('an agent without room for the whole history adopts it, and asks no model for a summary', async () => {
  await using room = await company(['p'], { agents: { p: { contextWindow: 12_000, maxOutputTokens: 500 } } });
  await importInto(room.troupe);
  await room.say(UMA, 'p', 'When do we ship?');
  expect(room.requests('p')).toHaveLength(1);
  const [first = '', ...others] = room.sent('p');
  expect(first).toContain('Deployments go to Oslo.');
  expect(first).toContain('never on a Sunday');
  expect(others.join('\n')).not.toContain('«0: The deployment');
  expect(others.join('\n')).toContain('19: The deployment');
});

test('the same file twice adds nothing; in a conversation with other events its summary is left out', async () => {
  await using room = await company(['p']);
  await importInto(room.troupe);
  const { head } = await room.troupe.state(ROOM);
  await importInto(room.troupe);
  expect((await room.troupe.state(ROOM)).head).toBe(head);

  await using other = await company(['p']);
  await other.say(UMA, null, 'something else');
  const report = await importInto(other.troupe);
  expect(report.kinds).toEqual({ message: 22, compaction: 0 });
  expect(report.skipped).toMatchObject([{ kind: 'metadata' }, { kind: 'summary', count: 1 }]);
});
