import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import {
  foldTask,
  forkTaskFold,
  heldTasks,
  isDue,
  isResolved,
  isTaskOpen,
  newTaskFold,
  openTasks,
  type TaskFold,
} from '../../src/machines/task-fold.ts';

const OWNERS = ['ada', 'bo'];
const TASKS = Array.from({ length: 8 }, (_, index) => `q-${index}`);

type Move =
  | { type: 'ask'; task: string; owner: string; group: string; join: 'all' | 'any' | 'first' }
  | { type: 'end'; task: string; outcome: 'answered' | 'expired' }
  | { type: 'give'; owner: string };

const owner = fc.constantFrom(...OWNERS);
const task = fc.constantFrom(...TASKS);
const moves = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constant('ask' as const),
      task,
      owner,
      group: fc.constantFrom('g1', 'g2', 'g3'),
      join: fc.constantFrom('all' as const, 'any' as const, 'first' as const),
    }),
    fc.record({
      type: fc.constant('end' as const),
      task,
      outcome: fc.constantFrom('answered' as const, 'expired' as const),
    }),
    fc.record({ type: fc.constant('give' as const), owner }),
  ),
  { maxLength: 60 },
);

/** Plays moves; a group belongs to one agent, as calls of one turn do. */
function play(all: readonly Move[], each?: (fold: TaskFold, event: Event) => void): TaskFold {
  const fold = newTaskFold();
  for (const [index, move] of all.entries()) {
    const event = eventOf(fold, move, index + 1);
    foldTask(fold, event);
    each?.(fold, event);
  }
  return fold;
}

function eventOf(fold: TaskFold, move: Move, seq: number): Event {
  const of = (kind: string, author: string, body: object) =>
    ({ seq, at: seq, kind, author: { kind: 'agent', id: author }, to: [], body }) as unknown as Event;
  switch (move.type) {
    case 'ask': {
      const { task: question, group, join } = move;
      return of('question', move.owner, { question, group: `${move.owner}-${group}`, join });
    }
    case 'end':
      return of('question.answered', 'eve', { question: move.task, outcome: move.outcome });
    case 'give': {
      const covers = [...fold.ended].filter(([end, each]) => each.owner === move.owner && isDue(fold, end));
      return of('turn.done', move.owner, { covers: covers.map(([end]) => end), steps: 1, usage: {} });
    }
  }
}

test('a task is opened once and ended once, whatever else comes', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const first = new Map<string, { seq: number; end: unknown }>();
      const fold = play(all, (now) => {
        for (const [id, { seq, end }] of now.tasks) {
          const known = first.get(id);
          if (known) expect(seq).toBe(known.seq);
          if (known?.end) expect(end).toBe(known.end);
          first.set(id, { seq, end });
        }
      });
      expect(fold.ended.size).toBe([...fold.tasks.values()].filter(({ end }) => end).length);
    }),
  );
});

test('the open tasks are those that a search of all tasks finds', () => {
  fc.assert(
    fc.property(moves, (all) => {
      play(all, (fold) => {
        for (const agent of OWNERS) {
          const own = [...fold.tasks.values()].filter((each) => each.owner === agent);
          expect(openTasks(fold, agent as never)).toEqual(own.filter(({ end }) => end === null));
          const held = own.filter(
            ({ end, group }) => end && !isResolved(fold, group) && !isDue(fold, end.seq),
          );
          expect(new Set(heldTasks(fold, agent as never))).toEqual(new Set(held));
        }
      });
    }),
  );
});

test('a group that its owner has received is never due again', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const given = new Set<string>();
      play(all, (fold, event) => {
        if (event.kind === 'turn.done')
          for (const seq of event.body.covers) given.add(fold.ended.get(seq)?.group ?? '');
        for (const [seq, { group }] of fold.ended) if (given.has(group)) expect(isDue(fold, seq)).toBe(false);
      });
    }),
  );
});

test('looking ahead in a copy leaves the original as it was', () => {
  fc.assert(
    fc.property(moves, moves, (all, ahead) => {
      const fold = play(all);
      const before = structuredClone(fold);
      const copy = forkTaskFold(fold);
      for (const [index, move] of ahead.entries())
        foldTask(copy, eventOf(copy, move, all.length + index + 1));
      expect(structuredClone(fold)).toEqual(before);
    }),
  );
});

test('a thread lists its open tasks in order, and names the last one', () => {
  const move = fc.record({ task: fc.constantFrom(...TASKS), isEnd: fc.boolean() });
  fc.assert(
    fc.property(fc.uniqueArray(move, { selector: ({ task: id, isEnd }) => `${id} ${isEnd}` }), (all) => {
      const fold = newTaskFold();
      let open: string[] = [];
      let last: string | null = null;
      for (const [index, { task: delegation, isEnd }] of all.entries()) {
        const kind = isEnd ? 'delegation.ended' : 'delegation.opened';
        const body = { delegation, assignee: 'bo', thread: 'c', outcome: 'done' };
        const author = { kind: 'agent', id: 'ada' };
        foldTask(fold, { seq: index + 1, conversation: 'c', kind, author, to: [], body } as unknown as Event);
        open = isEnd ? open.filter((id) => id !== delegation) : [...open, delegation];
        last = isEnd ? last : delegation;
        expect(fold.thread?.open.map((each) => each.delegation) ?? []).toEqual(open);
        expect(fold.thread?.opened.delegation ?? null).toBe(last);
        expect(isTaskOpen(fold)).toBe(open.length > 0);
      }
    }),
  );
});
