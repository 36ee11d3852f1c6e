import assert from 'node:assert/strict';
import { ActorAddress, addressKey, type Router, type WakeOutcome } from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';

/**
 * The contract of a router, in real time. `open` returns a router that is not started and that no other case shares. No
 * case waits for a run that must not start: a later wake serves as the barrier, because queues are first in, first out.
 */
const RETRY_MS = 40;
/** Timers may fire slightly early. */
const TIMER_SLACK_MS = 3;
const NEVER_MS = 3_600_000;

const A = address('a');
const B = address('b');
const C = address('c');

type AddCase = (group: string, name: string, run: (stage: Stage) => Promise<void>) => ConformanceCase;

/** Cases that every router must pass. */
export function routerConformance(open: () => Promise<Router>): ConformanceCase[] {
  const on: AddCase = (group, name, run) => ({
    group,
    name,
    async run() {
      const stage = createStage(await open());
      try {
        await run(stage);
      } finally {
        stage.releaseAll();
        await stage.router.close();
      }
    },
  });

  return [
    ...wakes(on),
    ...wakesDuringARun(on),
    ...busyActors(on),
    ...concurrency(on),
    ...failures(on),
    ...closing(on),
    ...backlogs(on),
  ];
}

function wakes(on: AddCase): ConformanceCase[] {
  return [
    on('R1', 'an actor woken three times while it waits runs once', async (stage) => {
      for (const each of [A, A, A, B]) await stage.router.wake(each);
      stage.start({ concurrency: 1 });
      await stage.started(B, 1);
      assert.equal(stage.starts(A), 1);
    }),
    on('R1', 'a wake after the run is served again', async (stage) => {
      stage.start({ concurrency: 1 });
      for (let run = 1; run <= 3; run += 1) {
        await stage.router.wake(A);
        await stage.started(A, run);
        await stage.ended(A, run);
      }
    }),
    on('R1', 'the handler receives the address that was woken', async (stage) => {
      const odd = ActorAddress.parse({ tenant: 't.1', conversation: 'x:y@z-1', agent: 'a_1' });
      stage.start({ concurrency: 1 });
      await stage.router.wake(odd);
      assert.deepEqual({ ...(await stage.started(odd, 1)) }, odd);
    }),
    on('R1', 'a delayed wake is served when it is due, not before', async (stage) => {
      stage.start({ concurrency: 1 });
      const woken = performance.now();
      await stage.router.wake(A, { delayMs: RETRY_MS });
      await stage.started(A, 1);
      assert.ok(performance.now() - woken >= RETRY_MS - TIMER_SLACK_MS);
    }),
    on('R1', 'an ordinary wake does not wait for a delayed one', async (stage) => {
      stage.start({ concurrency: 1 });
      await stage.router.wake(A, { delayMs: NEVER_MS });
      await stage.router.wake(A);
      await stage.started(A, 1);
    }),
  ];
}

function wakesDuringARun(on: AddCase): ConformanceCase[] {
  return [
    on('R2', 'a wake during a run starts one more run after it', async (stage) => {
      stage.start({ concurrency: 2, gated: [A] });
      await stage.router.wake(A);
      await stage.started(A, 1);
      for (const each of [A, A, A, B]) await stage.router.wake(each);
      await stage.started(B, 1);
      assert.equal(stage.starts(A), 1, 'a second run started during the first');
      stage.release(A);
      await stage.started(A, 2);
      stage.release(A);
      await stage.ended(A, 2);
      await stage.router.wake(C);
      await stage.started(C, 1);
      assert.equal(stage.starts(A), 2);
    }),
  ];
}

function busyActors(on: AddCase): ConformanceCase[] {
  return [
    on('R3', 'a busy actor runs again after the delay, and not before', async (stage) => {
      stage.start({ concurrency: 1, busyOnce: [A] });
      await stage.router.wake(A);
      await stage.ended(A, 1);
      const ended = performance.now();
      await stage.started(A, 2);
      assert.ok(performance.now() - ended >= RETRY_MS - TIMER_SLACK_MS);
    }),
    on('R3', 'a busy actor delays no other and loses no wake', async (stage) => {
      stage.start({ concurrency: 1, busyOnce: [A] });
      await stage.router.wake(A);
      await stage.ended(A, 1);
      await stage.router.wake(A);
      await stage.router.wake(B);
      await stage.started(B, 1);
      await stage.started(A, 2);
    }),
  ];
}

function concurrency(on: AddCase): ConformanceCase[] {
  return [
    on('R4', 'at most `concurrency` handlers run at once', async (stage) => {
      const all = Array.from({ length: 12 }, (_, index) => address(`n${index}`));
      for (const each of all) await stage.router.wake(each);
      stage.start({ concurrency: 3, gated: all });
      for (const each of all.slice(0, 3)) await stage.started(each, 1);
      for (const each of all) {
        await stage.started(each, 1);
        stage.release(each);
      }
      assert.equal(stage.peak(), 3);
    }),
    on('R4', 'actors are served in the order of their wakes', async (stage) => {
      const order = ['d', 'a', 'c', 'b', 'e'].map(address);
      for (const each of order) await stage.router.wake(each);
      stage.start({ concurrency: 1 });
      await stage.started(address('e'), 1);
      assert.deepEqual(stage.order(), order.map(addressKey));
    }),
    on('R4', 'depth counts waiting, running and delayed wakes', async (stage) => {
      stage.start({ concurrency: 1, gated: [A] });
      await stage.router.wake(A);
      await stage.started(A, 1);
      await stage.router.wake(B);
      await stage.router.wake(C, { delayMs: NEVER_MS });
      assert.deepEqual(await stage.router.depth(), { waiting: 1, active: 1, delayed: 1 });
    }),
  ];
}

function failures(on: AddCase): ConformanceCase[] {
  return [
    on('R5', 'an error of a handler is reported and stops no other', async (stage) => {
      stage.start({ concurrency: 1, throwsOnce: [A] });
      await stage.router.wake(A);
      await stage.router.wake(B);
      await stage.started(B, 1);
      assert.deepEqual(stage.errors(), [`${addressKey(A)}: thrown by a handler`]);
      assert.equal(stage.starts(A), 1);
      await stage.router.wake(A);
      await stage.started(A, 2);
    }),
  ];
}

function closing(on: AddCase): ConformanceCase[] {
  return [
    on('R6', 'close waits for running handlers and serves no new wakes', async (stage) => {
      stage.start({ concurrency: 1, gated: [A] });
      await stage.router.wake(A);
      await stage.started(A, 1);
      const closed = stage.router.close().then(() => stage.ends(A));
      await stage.router.wake(B);
      stage.release(A);
      assert.equal(await closed, 1, 'closed before the handler ended');
      assert.equal(stage.starts(B), 0, 'a wake after close was served');
    }),
    on('R6', 'close does not wait for delayed wakes or busy actors', async (stage) => {
      stage.start({ concurrency: 1, busyOnce: [A], retryInMs: NEVER_MS });
      await stage.router.wake(A);
      await stage.ended(A, 1);
      await stage.router.wake(B, { delayMs: NEVER_MS });
      await stage.router.close();
      assert.equal(stage.starts(A), 1);
      assert.equal(stage.starts(B), 0);
    }),
    on('R6', 'a router that was never started closes', async (stage) => {
      await stage.router.wake(A);
      await stage.router.close();
    }),
  ];
}

function backlogs(on: AddCase): ConformanceCase[] {
  return [
    on('R7', 'backlog counts the waiting wakes of one tenant', async (stage) => {
      const others = { ...B, tenant: `${B.tenant}-2` as ActorAddress['tenant'] };
      stage.start({ concurrency: 1, gated: [A] });
      await stage.router.wake(A);
      await stage.started(A, 1);
      for (const each of [B, C, others, B]) await stage.router.wake(each);
      assert.ok((await stage.router.backlog(B.tenant)) >= 2);
      assert.equal(await stage.router.backlog(others.tenant), 1);
      stage.release(A);
      await stage.started(others, 1);
    }),
    on('R10', 'the waiting actors are listed, also those held back', async (stage) => {
      const began = Date.now();
      stage.start({ concurrency: 1, busyOnce: [A], gated: [B], retryInMs: NEVER_MS });
      await stage.router.wake(A);
      await stage.ended(A, 1);
      await stage.router.wake(B);
      await stage.started(B, 1);
      await stage.router.wake(C);
      const waiting = await stage.router.waiting(10);
      const told = waiting.map(({ address: { agent }, isHeldBack }) => ({ agent, isHeldBack }));
      assert.deepEqual(told, [
        { agent: A.agent, isHeldBack: true },
        { agent: C.agent, isHeldBack: false },
      ]);
      for (const { since } of waiting) assert.ok(Math.abs(since - began) < 60_000, 'since when it waits');
      assert.equal((await stage.router.waiting(1)).length, 1);
      assert.deepEqual(await stage.router.waiting(10, `${A.tenant}-2` as ActorAddress['tenant']), []);
    }),
  ];
}

function address(agent: string): ActorAddress {
  return ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent });
}

interface Play {
  concurrency: number;
  /** Handlers of these actors run until `release`. */
  gated?: readonly ActorAddress[];
  busyOnce?: readonly ActorAddress[];
  throwsOnce?: readonly ActorAddress[];
  retryInMs?: number;
}

type Stage = ReturnType<typeof createStage>;

/** A router whose handler records its runs and lets a case wait for them. */
function createStage(router: Router) {
  const starts: ActorAddress[] = [];
  const ends: ActorAddress[] = [];
  const errors: string[] = [];
  const gates: { key: string; open: () => void }[] = [];
  const watchers = new Set<() => void>();
  let active = 0;
  let peak = 0;
  let closed = false;

  const of = (list: readonly ActorAddress[], wanted: ActorAddress) =>
    list.filter((each) => addressKey(each) === addressKey(wanted));
  const changed = () => watchers.forEach((check) => check());

  function reached(
    list: readonly ActorAddress[],
    wanted: ActorAddress,
    count: number,
  ): Promise<ActorAddress> {
    return new Promise((resolve) => {
      function check(): void {
        const found = of(list, wanted)[count - 1];
        if (!found) return;
        watchers.delete(check);
        resolve(found);
      }
      watchers.add(check);
      check();
    });
  }

  async function play(script: Play, woken: ActorAddress): Promise<WakeOutcome> {
    const listed = (list: readonly ActorAddress[] = []) => of(list, woken).length > 0;
    const first = of(starts, woken).length === 0;
    starts.push(woken);
    active += 1;
    peak = Math.max(peak, active);
    changed();
    try {
      if (listed(script.gated) && !closed) {
        await new Promise<void>((open) => gates.push({ key: addressKey(woken), open }));
      }
      if (first && listed(script.throwsOnce)) throw new Error('thrown by a handler');
      if (first && listed(script.busyOnce)) return { kind: 'busy', retryInMs: script.retryInMs ?? RETRY_MS };
      return { kind: 'done' };
    } finally {
      active -= 1;
      ends.push(woken);
      changed();
    }
  }

  return {
    router,
    start(script: Play): void {
      router.start((woken) => play(script, woken), {
        concurrency: script.concurrency,
        onError: (error, at) =>
          errors.push(`${addressKey(at)}: ${error instanceof Error ? error.message : error}`),
      });
    },
    started: (wanted: ActorAddress, count: number) => reached(starts, wanted, count),
    ended: (wanted: ActorAddress, count: number) => reached(ends, wanted, count),
    starts: (wanted: ActorAddress) => of(starts, wanted).length,
    ends: (wanted: ActorAddress) => of(ends, wanted).length,
    order: () => starts.map(addressKey),
    peak: () => peak,
    errors: () => errors,
    /** Ends the oldest gated run of this actor. */
    release(wanted: ActorAddress): void {
      const index = gates.findIndex((gate) => gate.key === addressKey(wanted));
      assert.ok(index >= 0, `${addressKey(wanted)} does not wait at its gate`);
      gates.splice(index, 1)[0]?.open();
    },
    releaseAll(): void {
      closed = true;
      for (const gate of gates.splice(0)) gate.open();
    },
  };
}
