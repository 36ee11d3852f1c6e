import assert from 'node:assert/strict';
import { ActorAddress, type Admission, type AdmissionCaps, type Entry } from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';

/** What a case needs of an admission. Cases share nothing and run in real time. */
export interface AdmissionStage {
  /** Processes that share the caps. */
  members: readonly Admission[];
  /** Ends a member like a killed process: it neither renews nor returns its slots. */
  kill(member: Admission): Promise<void>;
}

/** How a suite opens what it tests. */
export interface AdmissionOpening {
  /** The limits. */
  caps: AdmissionCaps;
  /** Number of processes. */
  members: number;
  /** How long a slot is held without a renewal, ms. */
  slotMs: number;
}

/** Slots expire only in the cases of C2. A busy machine may delay a renewal, which is due after a third of this, by half of it. */
const SLOT_MS = 1_500;
const LONG_SLOT_MS = 60_000;
const ASKS = 200;
const POLL_MS = 20;
/** Timers may fire slightly early, and two clocks are compared. */
const TIMER_SLACK_MS = 10;

type AddCase = (group: string, name: string, caps: AdmissionCaps, play: Play) => ConformanceCase;
type Play = (members: [Admission, Admission, Admission], stage: AdmissionStage) => Promise<void>;

/** Cases that every admission must pass. */
export function admissionConformance(
  open: (opening: AdmissionOpening) => Promise<AdmissionStage>,
): ConformanceCase[] {
  const on: AddCase = (group, name, caps, play) => ({
    group,
    name,
    async run() {
      const stage = await open({ caps, members: 3, slotMs: group === 'C2' ? SLOT_MS : LONG_SLOT_MS });
      const [a, b, c] = stage.members;
      assert.ok(a && b && c, 'open must return the requested number of members');
      try {
        await play([a, b, c], stage);
      } finally {
        await Promise.all(stage.members.map((each) => each.close()));
      }
    },
  });

  return [...caps(on), ...expiry(on), ...callRates(on), ...uncapped(on), ...fairShares(on), ...loads(on)];
}

function caps(on: AddCase): ConformanceCase[] {
  return [
    on('C1', 'the cap of a tenant covers all members', { turnsPerTenant: 2 }, async ([a, b, c]) => {
      const first = await admitted(a, 'x');
      await admitted(b, 'x', 'other');
      await refused(c, 'x');
      await refused(a, 'x', 'other');
      await admitted(c, 'y');
      await first.leave();
      await admitted(c, 'x');
      await refused(a, 'x');
    }),
    on('C1', 'the cap of a provider covers all members', provider({ turns: 2 }), async ([a, b, c]) => {
      const first = await admitted(a, 'x');
      await admitted(b, 'x');
      await refused(c, 'x');
      await first.leave();
      await admitted(c, 'x');
      await refused(a, 'x');
    }),
    on('C1', 'a refused turn takes no slot of the other cap', both(1, 1), async ([a, b]) => {
      const first = await admitted(a, 'x');
      await refused(b, 'x');
      await refused(b, 'y');
      await admitted(b, 'y', 'uncapped');
      await first.leave();
      await refused(a, 'y');
      await admitted(a, 'x');
    }),
    on('C1', 'leaving twice frees one slot', { turnsPerTenant: 2 }, async ([a, b]) => {
      const first = await admitted(a, 'x');
      await admitted(b, 'x');
      await first.leave();
      await first.leave();
      await admitted(b, 'x');
      await refused(b, 'x');
    }),
    on('C1', `the caps hold under ${ASKS} concurrent requests`, provider({ turns: 7 }), async (members) => {
      let holding = 0;
      let peak = 0;
      let served = 0;
      async function work(index: number): Promise<void> {
        const member = members[index % members.length] ?? members[0];
        for (;;) {
          const entry = await member.enter(address('x'), 'capped');
          if (entry.kind === 'admitted') {
            peak = Math.max(peak, ++holding);
            await pause(1 + (index % 5));
            served += 1;
            holding -= 1;
            return entry.leave();
          }
          assert.ok(entry.retryInMs > 0, 'retryInMs must be positive');
          await pause(index % 20);
        }
      }
      await Promise.all(Array.from({ length: ASKS }, (_, index) => work(index)));
      assert.equal(served, ASKS);
      assert.equal(peak, 7);
    }),
    on('C1', 'closing returns all slots', { turnsPerTenant: 1 }, async ([a, b]) => {
      await admitted(a, 'x');
      await a.close();
      await admitted(b, 'x');
    }),
  ];
}

function expiry(on: AddCase): ConformanceCase[] {
  return [
    on('C2', 'slots of a killed member expire', both(1, 1), async ([a, b], stage) => {
      await admitted(a, 'x');
      const killed = performance.now();
      await stage.kill(a);
      await untilAdmitted(b, 'x');
      const waited = performance.now() - killed;
      // The last renewal may be up to a third of the slot's time ago.
      assert.ok(waited >= (SLOT_MS * 2) / 3 - TIMER_SLACK_MS, `free after ${waited} ms`);
    }),
    on('C2', 'a live member keeps its slots', both(1, 1), async ([a, b]) => {
      const slot = await admitted(a, 'x');
      const until = performance.now() + SLOT_MS * 2.5;
      while (performance.now() < until) {
        await refused(b, 'x');
        await pause(POLL_MS);
      }
      await slot.leave();
      await untilAdmitted(b, 'x');
    }),
  ];
}

function callRates(on: AddCase): ConformanceCase[] {
  return [
    on(
      'C3',
      'the burst bounds concurrent calls',
      provider({ callsPerMinute: 6, burst: 4 }),
      async (members) => {
        const waits = await Promise.all(
          Array.from({ length: 12 }, (_, index) => takeCall(members[index % 3] ?? members[0])),
        );
        assert.equal(waits.filter((wait) => wait === 0).length, 4);
        // 6 a minute is one per 10 s.
        for (const wait of waits) assert.ok(wait >= 0 && wait <= 10_000, `told to wait ${wait} ms`);
        assert.equal(await takeCall(members[0], 'other'), 0, 'another provider had to wait');
      },
    ),
    on(
      'C3',
      'the rate bounds calls; a caller that waits gets its call',
      provider({ callsPerMinute: 6_000, burst: 5 }),
      async (members) => {
        const began = performance.now();
        let calls = 0;
        async function work(member: Admission): Promise<void> {
          while (calls < 50) {
            const wait = await takeCall(member);
            if (wait > 0) await pause(wait);
            else {
              calls += 1;
              // The rate is 100 a second; one more call may be almost due.
              const most = 5 + ((performance.now() - began + TIMER_SLACK_MS) * 6_000) / 60_000;
              assert.ok(calls <= most + 1, `${calls} calls, at most ${most} are allowed`);
            }
          }
        }
        await Promise.all(members.map(work));
      },
    ),
  ];
}

function uncapped(on: AddCase): ConformanceCase[] {
  return [
    on('C4', 'without caps every turn is admitted', {}, async (members) => {
      for (const member of members) {
        await admitted(member, 'x');
        assert.equal(await takeCall(member), 0);
      }
    }),
    on('C4', 'a cap does not delay other providers', provider({ turns: 1 }), async ([a]) => {
      await admitted(a, 'x');
      await refused(a, 'x');
      await admitted(a, 'x', 'constructor');
      assert.equal(await takeCall(a, 'constructor'), 0);
    }),
  ];
}

function fairShares(on: AddCase): ConformanceCase[] {
  return [
    on('C6', 'a tenant gets only its share while another waits', provider({ turns: 4 }), async ([a, b]) => {
      const slots = [];
      for (let count = 0; count < 4; count += 1) slots.push(await admitted(a, 'x'));
      await refused(b, 'y');
      for (const slot of slots.slice(0, 2)) {
        await slot.leave();
        await refused(a, 'x');
        await admitted(b, 'y');
      }
      await refused(b, 'y');
      await slots[2]?.leave();
      await refused(b, 'y');
      await admitted(a, 'x');
    }),
    on('C6', 'a single tenant may take all slots', provider({ turns: 2 }), async ([a, b]) => {
      const slots = [await admitted(a, 'x'), await admitted(a, 'x')];
      await refused(b, 'y');
      await slots[0]?.leave();
      const other = await admitted(b, 'y');
      await other.leave();
      await untilAdmitted(a, 'x');
    }),
    on('C6', 'a tenant at its own cap reserves no share', both(1, 3), async ([a, b]) => {
      await admitted(a, 'y');
      await refused(a, 'y');
      await admitted(b, 'x');
      await refused(b, 'x');
      await admitted(b, 'z');
    }),
  ];
}

function loads(on: AddCase): ConformanceCase[] {
  return [
    on('C7', 'every member knows who holds slots and who waits', both(1, 2), async ([a, b, c]) => {
      const { tenant } = address('x');
      assert.deepEqual(await c.load(tenant), { caps: both(1, 2), held: [], waiting: [] });
      const first = await admitted(a, 'x');
      await refused(b, 'x');
      const [wait] = (await c.load(tenant)).waiting;
      assert.ok(wait && Math.abs(wait.since - Date.now()) < 60_000, 'since when it waits');
      await pause(2);
      await refused(c, 'x');
      const load = await c.load(tenant);
      assert.deepEqual(load.held, [{ address: address('x'), provider: 'capped' }]);
      assert.deepEqual(load.waiting, [
        { address: address('x'), provider: 'capped', for: 'slot', since: wait.since },
      ]);
      await first.leave();
      await admitted(b, 'x');
      assert.deepEqual((await a.load(tenant)).waiting, []);
    }),
    on('C7', 'a call beyond the rate waits', provider({ callsPerMinute: 6, burst: 1 }), async ([a, b]) => {
      assert.equal(await takeCall(a), 0);
      assert.ok((await takeCall(a)) > 0);
      const [wait] = (await b.load(address('x').tenant)).waiting;
      assert.equal(wait?.for, 'call');
    }),
  ];
}

function provider(capped: NonNullable<AdmissionCaps['providers']>[string]): AdmissionCaps {
  return { providers: { capped } };
}

function both(turnsPerTenant: number, turns: number): AdmissionCaps {
  return { turnsPerTenant, ...provider({ turns }) };
}

function address(tenant: string): ActorAddress {
  return ActorAddress.parse({ tenant, conversation: 'c1', agent: 'a' });
}

type Admitted = Extract<Entry, { kind: 'admitted' }>;

async function admitted(member: Admission, tenant: string, name = 'capped'): Promise<Admitted> {
  const entry = await member.enter(address(tenant), name);
  assert.ok(entry.kind === 'admitted', `${tenant} was refused at ${name}`);
  return entry;
}

async function refused(member: Admission, tenant: string, name = 'capped'): Promise<void> {
  const entry = await member.enter(address(tenant), name);
  assert.equal(entry.kind, 'full', `${tenant} was admitted at ${name}`);
}

async function untilAdmitted(member: Admission, tenant: string): Promise<void> {
  while ((await member.enter(address(tenant), 'capped')).kind === 'full') await pause(POLL_MS);
}

function takeCall(member: Admission, name = 'capped'): Promise<number> {
  return member.takeCall(address('x'), name);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
