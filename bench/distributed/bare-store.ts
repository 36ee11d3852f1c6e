import { newActorRow } from '../../src/store/actor-row.ts';
import type { EventRow } from '../../src/store/driver.ts';
import { messageText, report } from '../support.ts';
import { openBenchDatabase } from './bench-database.ts';

/**
 * The floor of `workers.ts`: the ten operations of a plain turn on the same server, in the order of a turn and with
 * as many turns at once, without engine or queue.
 */
const TURNS = 240;
const AT_ONCE = 16;
const DATA = JSON.stringify({ author: { kind: 'user', id: 'ana', name: 'Ana' }, text: 'x'.repeat(400) });

await using database = await openBenchDatabase();
const { events, actors, entries } = database.documents;

function row(conversation: string, seq: number): EventRow {
  const key = { tenant: 'default', conversation, id: `${conversation}:${seq}` };
  const hash = 'h'.repeat(43);
  const kind = { kind: 'message', to: ['agent'], hash, chain: hash, tokens: 20, turn: null };
  return { ...key, ...kind, seq, at: seq, data: `${messageText(seq)}${DATA}` };
}

async function turn(index: number): Promise<void> {
  const conversation = `c-${index}`;
  const key = { tenant: 'default', conversation, agent: 'agent' };
  const insertEntry = (namespace: 'prompt' | 'journal') =>
    entries.insert({ tenant: 'default', namespace, key: `${conversation}/1` }, DATA, index);
  await events.insert([row(conversation, 2)]);
  await actors.update(key, { freeAt: 1 }, { owner: 'bench', until: 2, raiseFence: true });
  await actors.update(key, { fence: 1 }, { turn: 'turn', data: DATA });
  await Promise.all([events.insert([row(conversation, 3)]), insertEntry('prompt')]);
  await insertEntry('journal');
  await actors.update(key, { fence: 1, turn: 'turn', notAborted: true }, { turn: null, data: DATA });
  await events.insert([row(conversation, 4), row(conversation, 5)]);
  await actors.update(key, { fence: 1 }, { owner: '', until: 0, outbox: false, data: DATA });
  await events.last({ tenant: 'default', conversation });
}

async function byClients(work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const client = async () => {
    while (next < TURNS) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
}

await byClients(async (index) => {
  const conversation = `c-${index}`;
  await events.insert([row(conversation, 1)]);
  await actors.insert(newActorRow({ tenant: 'default', conversation, agent: 'agent' }));
});
const start = performance.now();
await byClients(turn);
report({ turnsPerSecond: (TURNS * 1_000) / (performance.now() - start) });
