import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ChatChange, chatChanges } from '../../src/library/asking/chat.ts';
import { TroupeError } from '../../src/base/errors.ts';
import type { Note, Troupe } from '../../src/library/troupe.ts';
import { company, UMA } from '../support/company.ts';
import { at, committed, plan, roundParts, scene } from './turn-scene.ts';

/** A reader that checks each change. */
function reader() {
  const blocks = new Map<string, { text: string; isOpen: boolean; isVoid: boolean; kind: string }>();
  const calls = new Map<string, { args: string; ready: string | null; results: string[]; isVoid: boolean }>();
  const events: string[] = [];
  function see(change: ChatChange): void {
    switch (change.type) {
      case 'block.start':
        expect(blocks.has(change.block.id)).toBe(false);
        blocks.set(change.block.id, { text: '', isOpen: true, isVoid: false, kind: change.block.kind });
        return;
      case 'block.delta': {
        const block = blocks.get(change.id);
        expect(block).toMatchObject({ isOpen: true, isVoid: false });
        if (block) block.text += change.text;
        return;
      }
      case 'block.end': {
        const block = blocks.get(change.id);
        expect(block).toMatchObject({ isOpen: true, isVoid: false });
        if (block) block.isOpen = false;
        return;
      }
      case 'call.start':
        expect(calls.has(change.call.id)).toBe(false);
        calls.set(change.call.id, { args: '', ready: null, results: [], isVoid: false });
        return;
      case 'call.delta': {
        const call = calls.get(change.id);
        expect(call).toMatchObject({ ready: null, isVoid: false });
        if (call) call.args += change.text;
        return;
      }
      case 'call.ready': {
        const call = calls.get(change.id);
        expect(call).toMatchObject({ ready: null, isVoid: false });
        if (call) call.ready = change.args;
        return;
      }
      case 'call.progress':
        return;
      case 'call.result': {
        const call = calls.get(change.id);
        expect(call?.ready).not.toBeNull();
        call?.results.push(change.text);
        return;
      }
      case 'void':
        for (const id of change.ids) {
          const known = blocks.get(id) ?? calls.get(id);
          expect(known).toMatchObject({ isVoid: false });
          if (known) known.isVoid = true;
        }
        return;
      case 'event':
        events.push(change.event.kind);
    }
  }
  return { see, blocks, calls, events };
}

test('whatever was lost, doubled or void, the words and calls of a turn are shown once, as the log has them', () => {
  fc.assert(
    fc.property(plan, (given) => {
      const { live, stored } = scene(given);
      const changesOf = chatChanges();
      const { see, blocks, calls, events } = reader();
      const lost = new Set(given.lost);
      const again = new Set(given.again);
      for (const [index, part] of live.entries()) {
        if (!lost.has(index)) for (const change of changesOf(part)) see(change);
        // Doubled, as it is for a reader whose watch was renewed.
        if (again.has(index))
          for (const change of live.slice(Math.max(0, index - 3), index + 1).flatMap(changesOf)) see(change);
      }
      for (const part of stored) for (const change of changesOf(part)) see(change);
      const texts = [...blocks.values()].filter(({ isVoid }) => !isVoid);
      expect(texts.filter(({ isOpen }) => isOpen)).toEqual([]);
      expect(texts.map(({ text }) => text).join('')).toBe(
        [...given.steps.map(({ rounds }) => rounds.at(-1)?.text ?? ''), given.reply].join(''),
      );
      const made = [...calls.values()].filter(({ isVoid }) => !isVoid);
      expect(made).toEqual(
        given.steps.map(() => ({ args: '{"n":1}', ready: '{"n":1}', results: ['seen'], isVoid: false })),
      );
      expect(events).toEqual(stored.map((part) => (part as { event: { kind: string } }).event.kind));
    }),
    { numRuns: 2_000 },
  );
});

async function shown(parts: AsyncIterable<Note>): Promise<ChatChange[]> {
  const changesOf = chatChanges();
  const changes: ChatChange[] = [];
  for await (const part of parts) changes.push(...changesOf(part));
  return changes;
}

function texts(changes: readonly ChatChange[]): string {
  return changes.flatMap((change) => (change.type === 'block.delta' ? [change.text] : [])).join('');
}

test('a call that the model did not finish is void', () => {
  const changesOf = chatChanges();
  const place = { ...at, attempt: 1, step: 1, round: 1, call: 'call_1', name: 'look' };
  const notes = [
    { type: 'arguments', ...place, index: 0, text: '{"n' } as Note,
    { type: 'dropped', ...place } as Note,
  ];
  expect(notes.flatMap(changesOf)).toMatchObject([
    { type: 'call.start', call: { id: 'c:bo:1/1/call_1' } },
    { type: 'call.delta', text: '{"n' },
    { type: 'void', ids: ['c:bo:1/1/call_1'] },
  ]);
});

test('a stopped turn keeps the words that the log keeps', () => {
  const changesOf = chatChanges();
  const place = { attempt: 1, step: 1, round: 1 };
  const changes = [
    ...roundParts(place, 'Once upon', 1, null),
    committed('turn.aborted', 'end', { partial: 'Once upon a', by: 'Uma', covers: [] }),
  ].flatMap(changesOf);
  expect(changes.map(({ type }) => type)).toEqual([
    'block.start',
    'block.delta',
    'block.delta',
    'block.end',
    'event',
  ]);
  expect(texts(changes)).toBe('Once upon a');
});

test.each([
  [
    'a failed turn',
    'turn.failed',
    'Once upon',
    ['block.start', 'block.delta', 'block.end', 'event'],
    'Once upon',
  ],
  [
    'a stopped turn',
    'turn.aborted',
    'Once upon',
    ['block.start', 'block.delta', 'block.end', 'event'],
    'Once upon',
  ],
  [
    'a turn without words in the log',
    'turn.failed',
    '',
    ['block.start', 'block.delta', 'void', 'event'],
    'Once upon',
  ],
])('%s: words of a model call that failed are told once', (_, kind, partial, types, said) => {
  const changesOf = chatChanges();
  const place = { attempt: 1, step: 1, round: 1 };
  const lost = { type: 'void', ...at, ...place, reason: 'overloaded', all: false } as Note;
  const end = committed(kind, 'end', { partial, by: 'Uma', message: 'overloaded', covers: [] });
  const changes = [...roundParts(place, 'Once upon', 1, null), lost, end].flatMap(changesOf);
  expect(changes.map(({ type }) => type)).toEqual(types);
  expect(texts(changes)).toBe(said);
});

async function headOf(troupe: Troupe): Promise<number> {
  return (await troupe.state('c')).head;
}

test('who rejoins a message gets all that came of it, and who rejoins a decision what came of that', async () => {
  const { defineTool } = await import('../../src/tools/tool.ts');
  const z = await import('zod');
  const pay = defineTool({
    name: 'pay',
    description: '',
    schema: z.object({}),
    needsApproval: true,
    run: () => 'paid',
  });
  await using room = await company(['bo'], {
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [{ text: 'A moment.', calls: [{ name: 'pay', args: '{}' }] }, 'It is paid.'] },
  });
  const { troupe } = room;
  const answer = await troupe.ask('c', 'Pay.');
  const asked = answer.events[0]?.seq ?? 0;
  const first = await shown(troupe.rejoin('c', asked));
  expect(texts(first)).toBe('A moment.');
  const [wait] = answer.waits;
  const decided = await troupe.command(
    { command: 'decide', conversation: 'c', request: wait?.task.id ?? '', approved: true },
    UMA,
  );
  const second = await shown(troupe.rejoin('c', decided.seq));
  expect(texts(second)).toBe('It is paid.');
  expect(second.find(({ type }) => type === 'call.result')).toMatchObject({ outcome: 'done', text: 'paid' });
  const going = troupe.rejoin('c', asked);
  let next = await going.next();
  while (!next.done) next = await going.next();
  expect(next.value).toMatchObject({ text: '', outcome: 'answered' });
  expect(await headOf(troupe)).toBeGreaterThan(decided.seq);
});

test('an event that is not there cannot be rejoined', async () => {
  await using room = await company(['bo']);
  await room.say(UMA, 'bo', 'Hello');
  const going = room.troupe.rejoin('c', 99);
  await expect(going.next()).rejects.toThrow(TroupeError);
});
