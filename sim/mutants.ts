import type { Mode } from './faults.ts';
import { STEP_MUTANTS } from './step-mutants.ts';

/** One mechanism of the production code, removed: the simulation must notice. */
export interface Mutant {
  name: string;
  mode: Mode;
  /** Exact texts. Each must occur in its file exactly once, or the mutant is out of date. */
  edits: readonly Edit[];
  /** The edit is in the queue's adapter, which the simulated queue replaces. */
  plainDedup?: true;
}

export interface Edit {
  /** Path below `src`. */
  file: string;
  find: string;
  replace: string;
}

const LOOK_AGAIN =
  'if (lease.record.parked === null && !lease.signal.aborted) await lookAgain(deps, address, lease);';
const WAKE =
  'for (const { event } of appended) if (wake && event.to.length > 0) await wakeAddressed(log, event);';
const APPEND = 'const appended = broadcast.isAlone?.()';

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'checkpoints are read without a look at their hash',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/checkpoints/checkpoints.ts',
        find: "if (hashed !== text.slice(first + 1, second)) return { kind: 'damaged' };",
        replace: '',
      },
    ],
  },
  {
    name: 'checkpoints of a view that goes on',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/checkpoints/feature.ts',
        find: 'view: forkView(view), tasks: forkTaskFold(tasks)',
        replace: 'view, tasks',
      },
    ],
  },
  {
    name: 'seq by a counter instead of insert-max+1',
    mode: 'full',
    edits: [
      {
        file: 'store/documents/append-queue.ts',
        find: 'const head = trusted ?? { ...(await readLast(log)), at: begun };',
        replace: `const last = trusted ?? { ...(await readLast(log)), at: begun };
          const size = rowsUpToRepeat(rows, outcomes.length, stored).length;
          const head = { ...last, seq: globalThis.simCounters.get(nameOf(log)) ?? 0 };
          globalThis.simCounters.set(nameOf(log), head.seq + size);`,
      },
    ],
  },
  {
    name: 'append without the lookup of the id',
    mode: 'full',
    edits: [
      {
        file: 'store/documents/append-queue.ts',
        find: 'const twin = await events.find(log, row.id);',
        replace: 'const twin = null;',
      },
    ],
  },
  {
    name: 'reply first, then state',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: 'const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } });',
        replace: `await run.deps.log.append(run.live.address, [...outputsOf(run), ...endingOf(run)]);
          const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } });`,
      },
    ],
  },
  {
    name: 'no step journal',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/step-journal.ts',
        find: 'await store.journal(live.address.tenant, key, text, clock.now())',
        replace: 'text',
      },
    ],
  },
  {
    name: 'no effect ledger',
    mode: 'full',
    edits: [
      {
        file: 'store/create-store.ts',
        find: 'if (put.inserted) return { mine: true, record, stored };',
        replace: 'if (record) return { mine: true, record, stored };',
      },
    ],
  },
  {
    name: 'no sweeper',
    mode: 'full',
    edits: [
      {
        file: 'actors/engine/engine.ts',
        find: 'for (const address of due) await router.wake(address);',
        replace: '',
      },
    ],
  },
  {
    name: 'an ambiguous answer is taken for a refusal',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: 'const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } });',
        replace:
          'const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } }).catch(() => null);',
      },
    ],
  },
  {
    name: 'no fence in compare-and-set',
    mode: 'full',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: 'const { freeAt, ...holds } = expect;',
        replace: 'const { freeAt, fence: _, ...holds } = expect;',
      },
    ],
  },
  {
    name: 'wake before append',
    mode: 'light',
    edits: [
      {
        file: 'actors/log/conversation-log.ts',
        find: APPEND,
        replace: `for (const draft of drafts) if (wake && draft.to.length > 0) await wakeAddressed(log, draft);
          ${APPEND}`,
      },
      { file: 'actors/log/conversation-log.ts', find: WAKE, replace: '' },
    ],
  },
  {
    name: 'plain deduplication: no next job is kept',
    mode: 'light',
    edits: [
      {
        file: 'queue/bullmq/wake-queue.ts',
        find: 'deduplication: { id: key, keepLastIfActive: true },\n      ...(lane',
        replace: 'deduplication: { id: key },\n      ...(lane',
      },
    ],
    plainDedup: true,
  },
  {
    name: 'a busy job is acknowledged instead of delayed',
    mode: 'light',
    edits: [
      {
        file: 'actors/engine/activate.ts',
        find: "return { kind: 'busy', retryInMs: wait + Math.floor(deps.random() * 50), isBegun: true };",
        replace: "return { kind: 'done' };",
      },
    ],
  },
  {
    name: 'no second look after the release',
    mode: 'light',
    edits: [{ file: 'actors/engine/activate.ts', find: LOOK_AGAIN, replace: '' }],
  },
  {
    name: 'a retry pins its inputs again',
    mode: 'full',
    edits: [
      {
        file: 'actors/engine/activate.ts',
        find: `const turn = resumed
        ? await resumeTurn(deps, lease, live)
        : await beginTurn({ deps, lease, runtime, live });`,
        replace: 'const turn = await beginTurn({ deps, lease, runtime, live });',
      },
    ],
  },
  {
    name: 'the commit does not check for a cancellation',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: 'const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } });',
        replace: 'const committed = await lease.step(await stepOf(run));',
      },
    ],
  },
  {
    name: 'a lost lease acknowledges the job',
    mode: 'light',
    edits: [
      {
        file: 'actors/engine/activate.ts',
        find: "if (lease.isLost) return { kind: 'busy', retryInMs: LOST_PAUSE_MS, isBegun: true };",
        replace: '',
      },
    ],
  },
  {
    name: 'two activations of one actor in one process',
    mode: 'full',
    edits: [
      {
        file: 'actors/engine/engine.ts',
        find: "if (atWork.has(key)) return { kind: 'busy', retryInMs: AT_WORK_PAUSE_MS } as const;",
        replace: '',
      },
    ],
  },
  {
    name: 'an ending turn is not sealed',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: "run.resumed && run.ending.kind !== 'done' ? await sealTurn(run) : run",
        replace: 'run',
      },
    ],
  },
  {
    name: 'a session gets the whole view again',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/sessions/feature.ts',
        find: 'const delta = deltaOf(prompt, live.view, base);',
        replace: 'const delta = deltaOf(prompt, live.view, { ...base, sent: 0 });',
      },
    ],
  },
  {
    name: 'a session advances with an incomplete answer',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/sessions/feature.ts',
        find: "return { session: isLeft ? { ...base, state: 'unknown' } : base, cursor: lease.record.cursor };",
        replace:
          'return { session: { ...base, sent: live.view.slots.length, sentHash: live.view.chain }, cursor: turn.upTo };',
      },
    ],
  },
  {
    name: 'after a failure, results are sent as if their turn were still open',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/sessions/feature.ts',
        find: 'const delta = deltaOf(prompt, live.view, base);',
        replace:
          'const delta = deltaOf(prompt, live.view, run.step > 0 ? placeOf(live.view, turn.id) : base);',
      },
    ],
  },
  {
    name: 'the messages that a dead attempt sent to a session are forgotten',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/sessions/feature.ts',
        find: 'return session.touched || resumed;',
        replace: 'return session.touched || (resumed && false);',
      },
    ],
  },
  {
    name: 'a late task end is accepted',
    mode: 'full',
    edits: [
      {
        file: 'actors/log/tasks.ts',
        find: "metrics.count('posts_too_late', { kind: draft.kind });",
        replace: `metrics.count('posts_too_late', { kind: draft.kind });
          await log.append({ tenant, conversation }, [{ ...draft, id: 'late:' + draft.id }]);`,
      },
      {
        file: 'store/documents/actor-steps.ts',
        find: "if (ifTaken === 'drop') return { kind: 'taken' };",
        replace: '',
      },
    ],
  },
  {
    name: 'no deadlines',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: 'timers: [...liveTimers(run), ...(isDone ? run.timers : [])],',
        replace: 'timers: [],',
      },
    ],
  },
  {
    name: 'a call runs without its approval',
    mode: 'full',
    edits: [
      {
        file: 'actors/tasks/apply-tool-request.ts',
        find: 'if (!tool.needsApproval) return null;',
        replace: 'if (!tool.needsApproval || step >= 0) return null;',
      },
    ],
  },
  {
    name: 'a task is done while its assignee waits for others',
    mode: 'full',
    edits: [
      {
        file: 'actors/tasks/task-ends.ts',
        find: 'if (waits > 0 || run.isAddressedAgain)',
        replace: 'if (waits > 1_000 || run.isAddressedAgain)',
      },
    ],
  },
  {
    name: 'events for other logs are not stored with the turn',
    mode: 'light',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: "...posts.map((post) => ({ ...post, ifTaken: 'drop' as const })),",
        replace: '',
      },
    ],
  },
  ...STEP_MUTANTS,
  {
    name: 'a cached tail is taken for the log',
    mode: 'light',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: 'return isBehind ? catchUp(deps.store, live.address, live) : head;',
        replace: 'return isBehind ? head : head;',
      },
    ],
  },
  {
    name: 'steering messages are not pinned',
    mode: 'full',
    edits: [
      {
        file: 'actors/features/steering/feature.ts',
        find: 'await run.lease.write({ state: { turn: next } });',
        replace: '',
      },
    ],
  },
];
