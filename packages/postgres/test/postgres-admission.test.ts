import { describe, expect, onTestFinished, test } from 'vitest';
import { ActorAddress } from '../../../src/events/index.ts';
import type { Admission, AdmissionCaps, Entry } from '../../../src/queue/admission.ts';
import { createPostgresAdmission } from '../src/queue/postgres-admission.ts';
import { ensureTables } from '../src/queue/queue-database.ts';
import { openQueueConnections } from '../src/store/connect-postgres.ts';
import { type AdmissionOpening, admissionConformance } from '../../testing/src/admission-conformance.ts';
import { POSTGRES_URL } from './postgres-stage.ts';
import { startPostgresNode } from '../../../test/services/postgres.ts';
import { until } from '../../../test/queue/connections.ts';
import { openQueueStage } from './postgres-queue-stage.ts';

const X = ActorAddress.parse({ tenant: 'x', conversation: 'c1', agent: 'a' });
const ONE_AT_A_TIME: AdmissionCaps = { turnsPerTenant: 1, providers: { p: { turns: 1, callsPerMinute: 1 } } };
const SKIPPED = POSTGRES_URL ? '' : ' (skipped: no PostgreSQL)';
/** Admission stops asking when PostgreSQL answers late. The contract does not cover that, and a busy machine is late. */
const PATIENT_MS = 60_000;

function fails(asked: Promise<unknown>): Promise<boolean> {
  return asked.then(
    () => false,
    () => true,
  );
}

async function admitted(entering: Promise<Entry>): Promise<Extract<Entry, { kind: 'admitted' }>> {
  const entry = await entering;
  if (entry.kind !== 'admitted') throw new Error('refused');
  return entry;
}

describe.skipIf(!POSTGRES_URL)(`the PostgreSQL admission keeps the contract${SKIPPED}`, () => {
  const open = async ({ caps, members, slotMs }: AdmissionOpening) => {
    const stage = await openQueueStage(POSTGRES_URL);
    onTestFinished(() => stage[Symbol.asyncDispose]());
    const kills = new Map<Admission, () => Promise<void>>();
    for (let count = 0; count < members; count += 1) {
      const { database, kill } = await stage.join();
      const options = { caps, slotMs, answerMs: PATIENT_MS, onWarning: stage.onWarning };
      kills.set(createPostgresAdmission({ database, ...options }), kill);
    }
    return { members: [...kills.keys()], kill: async (member: Admission) => kills.get(member)?.() };
  };
  for (const each of admissionConformance(open)) test(`${each.group} ${each.name}`, () => each.run());
});

test('the PostgreSQL admission sends no statement without a cap', async () => {
  // Nothing listens there, so a statement would cause a warning.
  const { database } = openQueueConnections('postgres://127.0.0.1:1/x');
  const warnings: unknown[] = [];
  const caps = { providers: { p: { turns: 1, callsPerMinute: 1 }, q: {} } };
  const admission = createPostgresAdmission({
    database,
    caps,
    onWarning: (warning) => warnings.push(warning),
  });
  for (const provider of ['q', 'r', 'constructor']) {
    await (await admitted(admission.enter(X, provider))).leave();
    expect(await admission.takeCall(X, provider)).toBe(0);
  }
  expect(warnings).toEqual([]);
  await admission.enter(X, 'p');
  expect(warnings).toHaveLength(1);
  await admission.close();
  await database.close();
});

describe.skipIf(!POSTGRES_URL)(`the PostgreSQL admission${SKIPPED}`, () => {
  test('counts its slots again after its rows were lost', async () => {
    await using stage = await openQueueStage(POSTGRES_URL);
    const open = async () => {
      const { database } = await stage.join();
      const options = {
        caps: ONE_AT_A_TIME,
        slotMs: 6_000,
        answerMs: PATIENT_MS,
        onWarning: stage.onWarning,
      };
      return createPostgresAdmission({ database, ...options });
    };
    const [holder, other] = [await open(), await open()];
    const slot = await admitted(holder.enter(X, 'p'));
    await stage.sql('TRUNCATE t.admission');
    await until(
      async () => (await stage.sql(`SELECT 1 FROM t.admission WHERE scope = 'provider:p'`)).length === 1,
    );
    expect((await other.enter(X, 'p')).kind).toBe('full');
    await slot.leave();
    await until(async () => (await other.enter(X, 'p')).kind === 'admitted');
    await Promise.all([holder.close(), other.close()]);
  });
});

test('when PostgreSQL is unavailable all are admitted, and counted when it is back', async () => {
  const server = await startPostgresNode();
  if ('not' in server) return test.skip('skipped: no PostgreSQL to start');
  onTestFinished(() => server.stop());
  const { database } = openQueueConnections(server.url);
  const stage = { ...database, schema: 'public' };
  await ensureTables(stage);
  const warnings: string[] = [];
  const admission = createPostgresAdmission({
    database: stage,
    caps: ONE_AT_A_TIME,
    slotMs: 6_000,
    answerMs: 10_000,
    onWarning: (warning) => warnings.push(String(warning)),
  });
  const first = await admitted(admission.enter(X, 'p'));
  expect((await admission.enter(X, 'p')).kind).toBe('full');

  await server.node.kill();
  // Connections end a moment after their server.
  await until(() => fails(database.rows({ text: 'SELECT 1' })));
  const meanwhile = await Promise.all(Array.from({ length: 20 }, () => admitted(admission.enter(X, 'p'))));
  expect(await admission.takeCall(X, 'p')).toBe(0);
  expect(await admission.takeCall(X, 'p')).toBe(0);
  await first.leave();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain('PostgreSQL is unavailable');

  await server.node.start();
  await until(() => warnings.length === 2);
  expect(warnings[1]).toContain('PostgreSQL is back');
  expect((await admission.enter(X, 'p')).kind).toBe('full');
  await Promise.all(meanwhile.map((each) => each.leave()));
  await until(async () => (await admission.enter(X, 'p')).kind === 'admitted');
  expect((await admission.enter(X, 'p')).kind).toBe('full');
  await admission.close();
  await database.close();
});
