import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { bundleProcess } from '../../rig/bundle-process.ts';
import type { ActorRecord, ConversationId, Event } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { dataPaths } from '../../src/store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import { type Random, randomOf, suiteSeed } from '../support/engine-random.ts';

const CHILD = path.join(import.meta.dirname, '../support/engine-child.ts');
const KILLS = 25;
const MOST_ROUNDS = 100;

interface Life {
  /** Turns that the process found pinned: those that the previous kill interrupted. */
  pinned: number;
  acked: string[];
}

/** Runs one process. Kills it once so many of its posts are acknowledged, or lets it finish. */
async function live(program: string, args: string[], posts: number | null): Promise<Life> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const life: Life = { pinned: 0, acked: [] };
  const ended = new Promise<string | null>((resolve) => child.on('close', (_, signal) => resolve(signal)));
  for await (const line of createInterface({ input: child.stdout })) {
    const told = JSON.parse(line) as { pinned?: number; acked?: string };
    life.pinned += told.pinned ?? 0;
    if (told.acked !== undefined) life.acked.push(told.acked);
    if (life.acked.length === posts) child.kill('SIGKILL');
  }
  expect(await ended).toBe(posts === null ? null : 'SIGKILL');
  return life;
}

async function readAll(dir: string): Promise<{ events: Event[]; actors: ActorRecord[] }> {
  const store = createStore(await openSqliteDriver({ path: dataPaths(dir).database }));
  const events: Event[] = [];
  const actors: ActorRecord[] = [];
  for (const { id } of await store.conversations('default' as Event['tenant'], 1_000)) {
    const log = { tenant: 'default' as Event['tenant'], conversation: id satisfies ConversationId };
    events.push(...(await store.read(log, { after: 0 })));
    for (const actor of await store.listActors(log)) {
      if ('address' in actor) expect.fail(`${actor.address.agent}: ${JSON.stringify(actor)}`);
      else actors.push(actor);
    }
  }
  await store.close();
  return { events, actors };
}

/** Compares the tool's own ledger with the log. */
function ledgerProblems(ledger: string, events: readonly Event[]): { problems: string[]; lost: number } {
  const written = readFileSync(ledger, 'utf8').trim().split('\n');
  const problems = written
    .filter((line, index) => written.indexOf(line) !== index)
    .map((line) => `${line} twice`);
  let lost = 0;
  const known = new Set<string>();
  for (const event of events) {
    if (event.kind !== 'tool.result' || event.body.name !== 'note') continue;
    const effect = event.id.replace(':result:', '/');
    known.add(effect);
    if (event.body.outcome === 'lost') lost++;
    else if (!written.includes(effect))
      problems.push(`${effect} is ${event.body.outcome} and not in the book`);
  }
  return {
    problems: [
      ...problems,
      ...written.filter((line) => !known.has(line)).map((line) => `${line}: no result`),
    ],
    lost,
  };
}

async function killUntil(kills: number, program: string, dir: string, random: Random) {
  const ledger = path.join(dir, 'ledger.txt');
  const data = path.join(dir, 'data');
  const acked = new Set<string>();
  let hits = 0;
  let round = 0;
  for (; hits < kills && round < MOST_ROUNDS; round++) {
    const args = [data, ledger, String(Math.floor(random() * 1e9)), String(round), 'work'];
    const life = await live(program, args, 3 + Math.floor(random() * 20));
    if (life.pinned > 0) hits++;
    for (const id of life.acked) acked.add(id);
  }
  const last = await live(program, [data, ledger, '0', String(round), 'finish'], null);
  return { acked, hits: hits + (last.pinned > 0 ? 1 : 0), rounds: round };
}

test(`a process killed ${KILLS} times during turns loses nothing, repeats nothing, and its file is intact`, async () => {
  const seed = suiteSeed();
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-kill-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const { child } = await bundleProcess({ child: CHILD }, dir, console.warn);
  const { acked, hits, rounds } = await killUntil(KILLS, child, dir, randomOf(seed));
  const { events, actors } = await readAll(path.join(dir, 'data'));
  const { problems, lost } = ledgerProblems(path.join(dir, 'ledger.txt'), events);
  const turns = events.filter(({ kind }) => kind === 'turn.done').length;
  const told = { rounds, hits, posts: acked.size, events: events.length, turns, lost };
  console.log(`TROUPE_SEED=${seed} kill -9: ${JSON.stringify(told)}`);

  expect(checkLog(events, actors)).toEqual([]);
  expect(problems).toEqual([]);
  const ids = new Set<string>(events.map(({ id }) => id));
  expect([...acked].filter((id) => !ids.has(id))).toEqual([]);
  expect(events.filter(({ kind }) => kind === 'turn.failed')).toEqual([]);
  expect(hits).toBeGreaterThanOrEqual(KILLS);
}, 400_000);
