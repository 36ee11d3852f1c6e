import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTaskTrees, type TaskTrees } from '../../src/actors/actor/task-trees.ts';
import { endId } from '../../src/actors/log/tasks.ts';
import { TroupeError } from '../../src/base/errors.ts';
import {
  type ConversationId,
  DEFAULT_TENANT,
  type EventDraft,
  type EventId,
  SYSTEM_AUTHOR,
} from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { createMemoryDocuments, type DocumentGate, newMemoryData } from '../../sim/memory-documents.ts';
import type { Store } from '../../src/store/store.ts';
import { setClock } from '../budget/stage.ts';

const LOG = { tenant: DEFAULT_TENANT, conversation: 'c' as ConversationId };
const PLACE = { tenant: DEFAULT_TENANT, root: LOG.conversation, tree: '1-a' };

function draftOf(id: string): EventDraft {
  return { id: id as EventId, author: SYSTEM_AUTHOR, to: [], kind: 'message', body: { content: id } };
}

async function append(store: Store, ...ids: string[]): Promise<void> {
  await store.append(
    LOG,
    ids.map((id) => ({ draft: draftOf(id), at: 1, tokens: 1 })),
  );
}

/** A turn that opens tasks, and its outcome. After a crash another process begins the turn anew. */
const turn = fc.record({
  tasks: fc.integer({ min: 1, max: 4 }),
  outcome: fc.constantFrom('commits' as const, 'commits' as const, 'fails' as const, 'dies once' as const),
  /** Number of its own tasks whose end it sees before its next turn. */
  ends: fc.nat(4),
  isTold: fc.boolean(),
});
const script = fc.array(fc.array(turn, { maxLength: 5 }), { minLength: 1, maxLength: 6 });
const faults = fc.array(fc.constantFrom('none', 'none', 'none', 'none', 'none', 'none', 'before', 'after'), {
  maxLength: 60,
});

test('three processes, crashes and store faults: one tree never has more tasks in total, or open at once, than allowed', async () => {
  let taken = 0;
  const refused = { made: 0, open: 0 };
  await fc.assert(
    fc.asyncProperty(
      script,
      faults,
      fc.record({
        maxTreeTasks: fc.integer({ min: 1, max: 20 }),
        maxTreeOpen: fc.integer({ min: 1, max: 8 }),
      }),
      fc.scheduler(),
      async (agents, left, limits, scheduler) => {
        const data = newMemoryData();
        const queue = [...left];
        const gate: DocumentGate = async (op, work) => {
          await scheduler.schedule(Promise.resolve(), op);
          const fault = queue.shift() ?? 'none';
          if (fault === 'before') throw new TroupeError('store_unavailable', `${op}: not done`);
          const result = work();
          if (fault === 'after') throw new TroupeError('store_unavailable', `${op}: done, and not heard of`);
          return result;
        };
        const sleep = () => scheduler.schedule(Promise.resolve(), 'sleep');
        let now = 0;
        const processes = Array.from({ length: 3 }, () => {
          const documents = createMemoryDocuments({ data, gate });
          const store = createStore(createDocumentDriver(documents, { random: () => 0.5, sleep }));
          // Time always advances, so that each check looks for ended tasks.
          const clock = { ...setClock(), sleep, monotonic: () => (now += 10_000) };
          return { store, trees: createTaskTrees({ store, clock, random: () => 0.5, limits }) };
        });
        const open = new Set<string>();
        const ended = new Set<string>();
        let made = 0;
        let mostOpen = 0;

        async function again<T>(work: (of: { store: Store; trees: TaskTrees }) => Promise<T>): Promise<T> {
          for (let round = 0; ; round += 1) {
            const process = processes[round % processes.length];
            if (!process) throw new Error('there is none');
            try {
              return await work(process);
            } catch (error) {
              if (!(error instanceof TroupeError) || error.policy !== 'retry') throw error;
            }
          }
        }

        async function live(agent: number, turns: (typeof agents)[number]): Promise<void> {
          for (const [number, { tasks, outcome, ends, isTold }] of turns.entries()) {
            const id = `c:a${agent}:${number + 1}`;
            const attempts = outcome === 'dies once' ? 2 : 1;
            let got: { task: string; opening: string }[] = [];
            for (let attempt = 1; attempt <= attempts; attempt += 1) {
              got = [];
              for (let index = 0; index < tasks; index += 1) {
                const task = `d-${agent}-${number}-${index}`;
                const opening = `${id}:opened:0.${index}`;
                const isEnded = (other: string) => isTold && ended.has(other);
                const asked = { id: task, opening: opening as EventId, isEnded };
                const answer = await again(({ trees }) => trees.take(PLACE, asked));
                if (answer.ok) got.push({ task, opening });
                else refused[answer.of] += 1;
              }
            }
            const opened = outcome === 'fails' ? [] : got;
            await again(({ store }) => append(store, ...opened.map(({ opening }) => opening), `${id}:end`));
            made += opened.length;
            taken += opened.length;
            for (const { task } of opened) open.add(task);
            mostOpen = Math.max(mostOpen, open.size);
            for (const { task } of opened.slice(0, ends)) {
              open.delete(task);
              await again(({ store }) => append(store, endId(task)));
              ended.add(task);
            }
          }
        }

        const asked = again(({ store }) => append(store, 'asked'));
        await scheduler.waitFor(asked);
        const work = Promise.all(agents.map((turns, agent) => live(agent, turns)));
        await scheduler.waitFor(work);
        expect(made).toBeLessThanOrEqual(limits.maxTreeTasks);
        expect(mostOpen).toBeLessThanOrEqual(limits.maxTreeOpen);
      },
    ),
    { numRuns: 150 },
  );
  // Ensures that the runs reach the limits.
  expect(taken).toBeGreaterThan(0);
  expect(refused.made).toBeGreaterThan(0);
  expect(refused.open).toBeGreaterThan(0);
});

async function alone(limits: { maxTreeTasks: number; maxTreeOpen: number }) {
  const clock = { ...setClock(), now: () => 1, sleep: () => Promise.resolve() };
  const documents = createMemoryDocuments({ data: newMemoryData() });
  const store = createStore(
    createDocumentDriver(documents, { random: () => 0.5, sleep: () => Promise.resolve() }),
  );
  let time = 0;
  const trees = createTaskTrees({
    store,
    clock: { ...clock, monotonic: () => (time += 10_000) },
    random: () => 0.5,
    limits,
  });
  const take = (task: string, turn: string) =>
    trees.take(PLACE, { id: task, opening: `c:a:${turn}:opened:0.0` as EventId, isEnded: () => false });
  return { store, take };
}

test('a repeated request for the same task keeps its place', async () => {
  const { take } = await alone({ maxTreeTasks: 1, maxTreeOpen: 1 });
  expect(await take('d-1', '1')).toEqual({ ok: true });
  expect(await take('d-1', '1')).toEqual({ ok: true });
  expect(await take('d-2', '2')).toEqual({ ok: false, of: 'made', made: 1, open: 1 });
});

test('places are freed by the logs alone: they show which tasks have ended and which never began', async () => {
  const { store, take } = await alone({ maxTreeTasks: 9, maxTreeOpen: 2 });
  await append(store, 'asked');
  await take('d-1', '1');
  await take('d-2', '2');
  const full = { ok: false, of: 'open', made: 2, open: 2 };
  // Neither turn has ended, so they may still open their tasks.
  expect(await take('d-3', '3')).toEqual(full);
  await append(store, 'c:a:1:opened:0.0', 'c:a:1:end');
  expect(await take('d-3', '3')).toEqual(full);
  await append(store, endId('d-1'));
  expect(await take('d-3', '3')).toEqual({ ok: true });
  await append(store, 'c:a:2:end');
  expect(await take('d-4', '4')).toEqual({ ok: true });
});
