import { afterEach, expect, test, vi } from 'vitest';
import type { Frame } from '../../src/cli/client/client.ts';
import { createActivityWords, type TurnFrame } from '../../src/cli/commands/watch.ts';
import { createReplyPrinter } from '../../src/cli/render/reply-printer.ts';
import type { Event, Told } from '../../src/events/index.ts';
import { workplace } from './harness.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const RULES = [
  {
    when: { step: 1 },
    reply: 'I look.',
    chunk: 3,
    calls: [{ name: 'todo', args: { items: [] } }],
  },
  { reply: 'Done.' },
];
const AGENTS = {
  agents: [{ id: 'bo', provider: 'scripted', tools: ['todo'], script: { rules: RULES } }],
};

test('watch shows a running turn: the call as it begins and grows, then that it runs, and its result', async () => {
  using place = workplace({ agents: AGENTS });
  await using dev = await place.dev();
  const send = () => place.call(['send', 'c1', 'go', '--to', 'bo', '--wait', '--url', dev.url]);
  await send();
  await using watch = await place.start(['watch', 'c1', '--url', dev.url]);
  await send();
  type Line = { type: string; kind?: string; text?: string; event?: { kind: string } };
  const lines = watch.lines as Line[];
  const ends = () => lines.filter(({ event }) => event?.kind === 'turn.done').length;
  while (ends() < 2) await watch.nextLine();
  const told = lines.filter(({ type }) => type === 'activity');
  const pieces = told.filter(({ kind }) => kind === 'arguments');
  expect(pieces.length).toBeGreaterThan(3);
  expect(pieces.map(({ text }) => text).join('')).toBe('{"items":[]}');
  const kinds = told.map(({ kind }) => kind).filter((kind) => kind !== 'arguments');
  expect(kinds).toEqual(['called', 'result']);
  const begun = lines.findIndex(({ kind }) => kind === 'arguments');
  expect(begun).toBeLessThan(lines.findLastIndex(({ event }) => event?.kind === 'step'));
});

const at = {
  conversation: 'c1',
  agent: 'bo',
  tenant: 'default',
  turn: 'c1:bo:1',
  attempt: 1,
  step: 1,
  round: 1,
};
const note = (told: Told) => ({ ...at, ...told }) as unknown as TurnFrame;
const piece = (index: number, text: string, call = 'k1') =>
  note({ type: 'arguments', call, name: 'save', index, text });

test('people are told once that a call begins', () => {
  const inWords = createActivityWords();
  const notes = [piece(0, ''), piece(0, '{"a"'), piece(4, ':1}'), piece(0, '{}', 'k2')];
  expect(notes.map(inWords)).toEqual(['begins to call save', null, null, 'begins to call save']);
  expect(inWords(note({ type: 'dropped', call: 'k2', name: 'save' }))).toMatch(/does not run/);
});

test('on a terminal a reply shows its calls when they begin, and with their step only those that were not shown', () => {
  let out = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => (out += String(text)) !== '');
  const before = process.stdout.isTTY;
  process.stdout.isTTY = true;
  try {
    const printer = createReplyPrinter();
    const show = (frame: Frame) => printer.show(frame, 0);
    show(note({ type: 'text', index: 0, text: 'I look.' }));
    show(piece(0, ''));
    show(piece(0, '{}'));
    expect(out.match(/calls save/g)).toHaveLength(1);
    const calls = [
      { id: 'k1', name: 'save', args: '{}' },
      { id: 'k2', name: 'list', args: '{}' },
    ];
    const step = {
      kind: 'step',
      seq: 2,
      turn: at.turn,
      author: { kind: 'agent', id: 'bo', name: 'Bo' },
      body: { calls },
    };
    show({ type: 'event', event: step as unknown as Event });
    expect(out.match(/calls \w+/g)).toEqual(['calls save', 'calls list']);
  } finally {
    process.stdout.isTTY = before;
  }
});
