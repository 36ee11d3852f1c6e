import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import {
  ActorAddress,
  type AgentId,
  type CalledNote,
  type LiveNote,
  type TextNote,
  turnId,
  type TurnId,
} from '../../src/events/index.ts';
import { createLiveFold, LiveGate } from '../../src/library/facade/live.ts';
import { createNoticeOutbox } from '../../src/queue/notice-outbox.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe, Watcher } from '../../src/library/troupe.ts';
import { UMA } from '../support/company.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { openTroupe } from '../support/mode.ts';
import { createWaits } from '../support/waits.ts';

const A = ActorAddress.parse({ tenant: 'default', conversation: 'c', agent: 'bo' });
const AT = { ...A, turn: turnId(A, 1), attempt: 1, step: 1, round: 1 };

/** One thing that happens between a worker and a reader in another process. */
type Move =
  | { kind: 'say' | 'write'; text: string }
  | { kind: 'send' }
  | { kind: 'lose' }
  | { kind: 'arrive' };

/** A worker and a reader, with a broadcast between them that joins what waits, and loses what it is told to lose. */
function stage() {
  const fold = createLiveFold();
  const toReader = createNoticeOutbox({ maxChars: 1_000_000 });
  let recalls = 0;
  const heard: LiveNote[] = [];
  let gate: LiveGate | null = null;
  const written = { text: '', args: '' };

  function tell(note: LiveNote): void {
    fold.note(note);
    if (note.type !== 'state') toReader.add(note);
  }

  return {
    written,
    heard,
    arrive(): void {
      gate ??= new LiveGate(
        (note) => heard.push(note),
        () => (recalls += 1),
      );
      recalls += 1;
    },
    say(text: string): void {
      tell({ type: 'text', ...AT, index: written.text.length, text });
      written.text += text;
    },
    write(text: string): void {
      const index = written.args.length;
      tell({ type: 'arguments', ...AT, call: 'k', name: 'copy', index, text });
      written.args += text;
    },
    /** Sends what waits, and what it was asked to tell again. */
    send(isLost: boolean): void {
      for (; recalls > 0; recalls -= 1) {
        const { tenant, conversation } = A;
        const notes = fold.of(A);
        if (notes.length > 0) toReader.add({ type: 'recalled', tenant, conversation, notes });
      }
      for (const notice of toReader.take()) {
        if (isLost && notice.type !== 'recalled') continue;
        if (notice.type === 'recalled') gate?.takeAgain(notice.notes);
        else if ('round' in notice) gate?.take(notice);
      }
    },
  };
}

test('whenever a reader comes, and whatever is joined or lost, it gets each character once and in order', () => {
  const text = fc.string({ minLength: 1, maxLength: 5 });
  const move: fc.Arbitrary<Move> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('say' as const, 'write' as const), text }) },
    { weight: 2, arbitrary: fc.constant<Move>({ kind: 'send' }) },
    { weight: 1, arbitrary: fc.constant<Move>({ kind: 'lose' }) },
    { weight: 1, arbitrary: fc.constant<Move>({ kind: 'arrive' }) },
  );
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      const made = stage();
      for (const each of moves) {
        if (each.kind === 'say') made.say(each.text);
        if (each.kind === 'write') made.write(each.text);
        if (each.kind === 'arrive') made.arrive();
        if (each.kind === 'send' || each.kind === 'lose') made.send(each.kind === 'lose');
      }
      made.arrive();
      // A last piece of each shows what is missing; the answer to it comes with the next sending.
      made.say('.');
      made.write('.');
      made.send(false);
      made.send(false);
      const read = { text: '', args: '' };
      for (const note of made.heard) {
        if (note.type === 'state') throw new Error('no state was told');
        if (!('index' in note)) throw new Error('only pieces were told');
        const key = note.type === 'text' ? 'text' : 'args';
        expect(note.index, 'a gap or an overlap').toBe(read[key].length);
        read[key] += note.text;
      }
      expect(read).toEqual(made.written);
    }),
    { numRuns: 500 },
  );
});

test('a reader of a long text gets its end, and then what follows', () => {
  const fold = createLiveFold();
  const chunk = 'x'.repeat(1_000);
  for (let at = 0; at < 1_000; at += 1) fold.note({ type: 'text', ...AT, index: at * 1_000, text: chunk });
  const heard: { index: number; text: string }[] = [];
  const gate = new LiveGate(
    (note) => note.type === 'text' && heard.push(note),
    () => gate.takeAgain(fold.of(A)),
  );
  gate.takeAgain(fold.of(A));
  gate.take({ type: 'text', ...AT, index: 1_000_000, text: 'end' });
  expect(heard.map(({ index, text }) => [index, text.length])).toEqual([
    [1_000_000 - 262_144, 262_144],
    [1_000_000, 3],
  ]);
});

test('a long text costs what its pieces cost, and not a copy of it with each', async () => {
  const fold = createLiveFold();
  const cpuMs = await cpuMsOf(() => {
    for (let index = 0; index < 1_048_576; index += 4)
      fold.note({ type: 'text', ...AT, index, text: 'word' });
  });
  // A copy with each takes 30 s.
  expect(cpuMs).toBeLessThan(5_000);
});

const called = (call: string, more: Partial<CalledNote> = {}): LiveNote => ({
  type: 'called',
  ...AT,
  call,
  name: 'copy',
  args: '{}',
  ...more,
});
const piece = (index: number, text: string, more: Partial<TextNote> = {}): LiveNote => ({
  type: 'text',
  ...AT,
  index,
  text,
  ...more,
});
const state = (turn: TurnId | null, name: string, event: string): LiveNote => ({
  type: 'state',
  ...A,
  turn,
  state: name,
  event,
  at: 1,
  doing: [],
});

test('a turn is told again with its state, also before its first word and while its agent is paused', () => {
  const fold = createLiveFold();
  fold.note(state(AT.turn, 'working.streaming', 'PROMPT_READY'));
  expect(fold.of(A)).toMatchObject([{ state: 'working.streaming' }]);
  fold.note(piece(0, 'one '));
  fold.note(state(null, 'paused', 'PAUSE'));
  fold.note(piece(4, 'two'));
  expect(fold.of(A)).toMatchObject([{ state: 'working.streaming' }, { index: 0, text: 'one two' }]);
  fold.note(state(AT.turn, 'paused', 'COMMITTED'));
  expect(fold.of(A)).toEqual([]);
});

test('what a hanging earlier attempt still tells changes nothing of a later one', () => {
  const fold = createLiveFold();
  fold.note(piece(0, 'old'));
  fold.note(piece(0, 'new', { attempt: 2 }));
  fold.note(piece(3, ' and older'));
  fold.note({ type: 'void', ...AT, reason: 'the turn was left', all: true });
  expect(fold.of(A)).toMatchObject([{ attempt: 2, text: 'new' }]);
});

test('calls of two steps with the same id are two calls', () => {
  const fold = createLiveFold();
  const notes = [called('call_0'), called('call_0', { step: 2 })];
  for (const note of notes) fold.note(note);
  const heard: LiveNote[] = [];
  const gate = new LiveGate(
    (note) => heard.push(note),
    () => gate.takeAgain(fold.of(A)),
  );
  gate.takeAgain(fold.of(A));
  for (const note of notes) gate.take(note);
  expect(heard).toEqual(notes);
});

test('what is missing is asked for again if no answer comes, and the answer about another agent is none', () => {
  let asked = 0;
  const heard: LiveNote[] = [];
  const gate = new LiveGate(
    (note) => heard.push(note),
    () => (asked += 1),
  );
  gate.take(called('k'));
  const other = { ...A, agent: 'cy' as AgentId };
  gate.takeAgain([piece(0, 'other', { ...other, turn: turnId(other, 1) })]);
  for (let index = 3; index <= 52; index += 1) gate.take(piece(index, '.'));
  expect([asked, heard.length]).toEqual([2, 1]);
  gate.takeAgain([piece(0, 'so far'), called('k')]);
  expect(heard.slice(1)).toEqual([piece(0, 'so far'), called('k')]);
});

const slow = (open: Promise<void>) =>
  defineTool({
    name: 'slow',
    description: '',
    schema: z.object({ on: z.string() }),
    async run(_, { progress }) {
      progress({ text: 'half', done: 1, total: 2 });
      await open;
      return 'all of it';
    },
  });

const BO: AgentInput = {
  id: 'bo',
  provider: 'scripted',
  script: {
    rules: [
      { when: { step: 1 }, reply: 'Let me look.', chunk: 3, calls: [{ name: 'slow', args: { on: 'it' } }] },
      { reply: 'Done.', chunk: 2 },
    ],
  },
  tools: ['slow'],
};

/** The call begins, and `{"on":"it"}` comes in pieces of three. */
const WRITTEN = Array.from({ length: 5 }, () => 'arguments');

/** What a watcher has put together. */
function reader(troupe: Troupe, conversation: string) {
  const told = { texts: [''], calls: [] as string[] };
  const { look, until } = createWaits();
  const watcher: Watcher = (note) => {
    if (note.type === 'text') {
      const { step, index, text } = note;
      told.texts[step - 1] = index === 0 ? text : `${told.texts[step - 1]}${text}`;
    }
    if ('call' in note) told.calls.push(note.type);
    look();
  };
  troupe.watch(watcher, { conversation });
  return { told, until };
}

test('a reader that comes while a tool runs is told what was said and called so far, and then the rest', async () => {
  const open = Promise.withResolvers<void>();
  await using troupe = await openTroupe({ agents: [BO], tools: [slow(open.promise)] });
  const first = reader(troupe, 'c');
  await troupe.send('c', { author: UMA, to: ['bo'], content: 'go' });
  await first.until(() => first.told.calls.includes('progress'));
  const late = reader(troupe, 'c');
  await late.until(() => late.told.calls.includes('progress'));
  expect(late.told).toEqual({ texts: ['Let me look.'], calls: ['called', 'progress'] });
  // Nobody is told twice because another reader came.
  expect(first.told.calls).toEqual([...WRITTEN, 'called', 'progress']);
  open.resolve();
  await troupe.idle();
  for (const [each, calls] of [
    [first, [...WRITTEN, 'called', 'progress', 'result']],
    [late, ['called', 'progress', 'result']],
  ] as const) {
    await each.until(() => each.told.texts[1] === 'Done.');
    expect(each.told).toEqual({ texts: ['Let me look.', 'Done.'], calls });
  }
  const after = reader(troupe, 'c');
  await Promise.resolve();
  expect(after.told).toEqual({ texts: [''], calls: [] });
});

test('a reader that was too slow for what was said is told it again, and then the rest', async () => {
  const open = Promise.withResolvers<void>();
  const reply = Array.from({ length: 1_500 }, (_, at) => at % 10).join('');
  const calls = [{ name: 'slow', args: { on: 'it' } }];
  const rules = [{ when: { step: 1 }, reply, chunk: 1, calls }, { reply: 'Done.' }];
  await using troupe = await openTroupe({
    agents: [{ ...BO, script: { rules } } as AgentInput],
    tools: [slow(open.promise)],
  });
  const quick = reader(troupe, 'c');
  const parts = troupe.stream('c', { author: UMA, to: ['bo'], content: 'go' });
  let text = '';
  for await (const part of parts) {
    if (part.type === 'text' && part.step === 1) {
      text = part.index === 0 ? part.text : text + part.text;
      if (part.index === 0) await quick.until(() => quick.told.calls.includes('progress'));
    }
    if (part.type === 'progress') open.resolve();
  }
  expect(text).toBe(reply);
});
