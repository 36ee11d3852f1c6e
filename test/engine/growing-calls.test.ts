import { expect, test } from 'vitest';
import * as z from 'zod';
import { NO_USAGE } from '../../src/events/index.ts';
import { defineProvider, type ModelEvent, type ModelRequest } from '../../src/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Note, Troupe } from '../../src/library/troupe.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { openTroupe } from '../support/mode.ts';
import { createWaits } from '../support/waits.ts';

type Read = (request: ModelRequest) => AsyncIterable<ModelEvent>;

const save = defineTool({
  name: 'save',
  description: '',
  schema: z.looseObject({}),
  run: () => 'saved',
});

function troupeOf(first: Read, more: Partial<TroupeInput> = {}): Promise<Troupe> {
  const mine = defineProvider({
    name: 'mine',
    async *read(request) {
      if (request.trace.step === 1) yield* first(request);
      else {
        yield { type: 'text', delta: 'Done.' };
        yield { type: 'done', stop: 'end', usage: NO_USAGE };
      }
    },
  });
  const agents = [
    {
      id: 'bo',
      provider: 'custom' as const,
      adapter: 'mine',
      model: 'm',
      contextWindow: 32_000,
      tools: ['save'],
    },
  ];
  return openTroupe({ agents, providers: { mine }, tools: [save], ...more } as TroupeInput);
}

const piece = (delta: string, id = 'k1'): ModelEvent => ({ type: 'calling', id, name: 'save', delta });
const call = (args: string, id = 'k1'): ModelEvent => ({ type: 'call', call: { id, name: 'save', args } });
const DONE: ModelEvent = { type: 'done', stop: 'calls', usage: NO_USAGE };

/** Yields these events, and the whole call of the pieces at the end. */
const written = (...pieces: string[]): Read => writtenOf(pieces);

const writtenOf = (pieces: readonly string[]): Read =>
  async function* () {
    for (const each of pieces) yield piece(each);
    yield call(pieces.join(''));
    yield DONE;
  };

async function partsOf(troupe: Troupe): Promise<Note[]> {
  const parts: Note[] = [];
  for await (const part of troupe.stream('c', { content: 'go', to: ['bo'] })) parts.push(part);
  return parts;
}

const callsOf = (parts: readonly Note[]) =>
  parts.filter(({ type }) => type === 'arguments' || type === 'called' || type === 'dropped');

/** What a reader has of each call, note by note. */
function shown(parts: readonly Note[]): string[] {
  const written = new Map<string, string>();
  return parts.flatMap((note) => {
    if (note.type === 'dropped') return [`${note.call} dropped `];
    if (note.type === 'called') return [`${note.call} running ${note.args}`];
    if (note.type !== 'arguments') return [];
    const before = written.get(note.call) ?? '';
    expect(note.index).toBe(before.length);
    written.set(note.call, before + note.text);
    return [`${note.call} writing ${before}${note.text}`];
  });
}

test('a call is told when it begins, and its arguments as the model writes them', async () => {
  await using troupe = await troupeOf(written('', '{"to":', '"dis', 'k"}'));
  const parts = await partsOf(troupe);
  expect(shown(parts)).toEqual([
    'k1 writing ',
    'k1 writing {"to":',
    'k1 writing {"to":"dis',
    'k1 writing {"to":"disk"}',
    'k1 running {"to":"disk"}',
  ]);
  expect(callsOf(parts)[0]).toMatchObject({
    name: 'save',
    step: 1,
    attempt: 1,
    agent: 'bo',
  });
});

test('a provider that gives no pieces shows each call whole', async () => {
  await using troupe = await troupeOf(async function* () {
    yield call('{"to":"disk"}');
    yield DONE;
  });
  expect(shown(await partsOf(troupe))).toEqual(['k1 writing {"to":"disk"}', 'k1 running {"to":"disk"}']);
});

test('what pieces left out is told when the call is whole', async () => {
  await using troupe = await troupeOf(async function* () {
    yield piece('');
    yield call('{"to":"disk"}');
    yield DONE;
  });
  expect(shown(await partsOf(troupe))).toEqual([
    'k1 writing ',
    'k1 writing {"to":"disk"}',
    'k1 running {"to":"disk"}',
  ]);
});

test('a call that the model does not finish is dropped, and the others run', async () => {
  await using troupe = await troupeOf(async function* () {
    yield piece('{"n":1}', 'k1');
    yield piece('{"n":', 'k2');
    yield call('{"n":1}', 'k1');
    yield { type: 'done', stop: 'length', usage: NO_USAGE };
  });
  const parts = await partsOf(troupe);
  expect(shown(parts)).toContain('k2 dropped ');
  expect(shown(parts)).not.toContain('k2 running {"n":');
  expect(parts.some((part) => part.type === 'event' && part.event.kind === 'tool.result')).toBe(true);
});

test('pieces of no call, and pieces behind their call, are not told', async () => {
  await using troupe = await troupeOf(async function* () {
    yield piece('{"a":1}', '');
    yield call('{}');
    yield piece('{"late":1}');
    yield DONE;
  });
  expect(shown(await partsOf(troupe))).toEqual(['k1 writing {}', 'k1 running {}']);
});

test('reasoning is told as the model thinks', async () => {
  await using troupe = await troupeOf(async function* () {
    for (const delta of ['Let me', ' think', '.']) yield { type: 'thinking', delta };
    yield { type: 'reasoning', reasoning: { text: 'Let me think.', provider: 'mine', model: 'm' } };
    yield call('{}');
    yield DONE;
  });
  const thought = (await partsOf(troupe)).flatMap((part) =>
    part.type === 'reasoning' ? [[part.index, part.text]] : [],
  );
  expect(thought).toEqual([
    [0, 'Let me'],
    [6, ' think'],
    [12, '.'],
  ]);
});

test('a reader that comes while the arguments grow is told them so far, and then the rest', async () => {
  const half = Promise.withResolvers<void>();
  await using troupe = await troupeOf(async function* () {
    yield piece('{"to":');
    yield piece('"di');
    await half.promise;
    yield piece('sk"}');
    yield call('{"to":"disk"}');
    yield DONE;
  });
  const { look, until } = createWaits();
  function read() {
    const told: string[] = [];
    troupe.watch(
      (note) => {
        if (note.type === 'arguments') told.push(`${note.index} ${note.text}`);
        look();
      },
      { conversation: 'c' },
    );
    return told;
  }
  const early = read();
  const answer = troupe.ask('c', 'go');
  await until(() => early.length === 2);
  const late = read();
  await until(() => late.length === 1);
  half.resolve();
  await answer;
  expect(early).toEqual(['0 {"to":', '6 "di', '9 sk"}']);
  expect(late).toEqual(['0 {"to":"di', '9 sk"}']);
});

const KEY = 'sk_live_abcdefghijklmnop1234';
const HIDES = { redact: (text: string) => text.replaceAll(KEY, '[key]') };

test('a secret that is split over pieces is hidden as in the log, and what is beside it grows', async () => {
  await using troupe = await troupeOf(
    written(
      '{"n":12',
      ',"plain":"a\\"',
      'b","key":"sk_live_',
      'abcdefghijklmnop12',
      '34","rest":[true,',
      '"x"]}',
    ),
    HIDES,
  );
  const parts = await partsOf(troupe);
  expect(shown(parts)).toEqual([
    'k1 writing {"n":',
    'k1 writing {"n":12,"plain":',
    'k1 writing {"n":12,"plain":"a\\"b","key":',
    'k1 writing {"n":12,"plain":"a\\"b","key":"[key]","rest":[true,',
    'k1 writing {"n":12,"plain":"a\\"b","key":"[key]","rest":[true,"x"]}',
    'k1 running {"n":12,"plain":"a\\"b","key":"[key]","rest":[true,"x"]}',
  ]);
  const step = parts.find((part) => part.type === 'event' && part.event.kind === 'step');
  expect(JSON.stringify(step)).toContain('[key]');
  expect(JSON.stringify(parts)).not.toContain('sk_live');
});

test.each([
  ['bare words', ['{"a":1, key: sk_live_abcdef', 'ghijklmnop1234}']],
  ['a line end in a text', ['{"a":"sk_live_abcdef', 'ghijklmnop1234\n"}']],
  ['a text that never ends', ['{"a":"sk_live_abcdef', 'ghijklmnop1234']],
])('arguments that are no JSON (%s) show no secret', async (_, pieces) => {
  await using troupe = await troupeOf(written(...pieces), HIDES);
  const told = JSON.stringify(await partsOf(troupe));
  expect(told).not.toContain('sk_live');
  expect(told).toContain('[key]');
});

test('reasoning that is redacted is told when it is whole', async () => {
  await using troupe = await troupeOf(async function* () {
    for (const delta of ['The key is sk_live_abcdef', 'ghijklmnop1234.']) yield { type: 'thinking', delta };
    yield { type: 'reasoning', reasoning: { text: `The key is ${KEY}.`, provider: 'mine', model: 'm' } };
    yield call('{}');
    yield DONE;
  }, HIDES);
  const parts = await partsOf(troupe);
  const thought = parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
  expect(thought).toEqual(['The key is [key].']);
});

test.each([
  ['as they are', {}],
  ['redacted', HIDES],
])('long arguments are cut, and told in linear time, %s', async (_, more) => {
  const words = Array.from({ length: 250_000 }, (_each, at) => `"w${at % 10}",`);
  await using troupe = await troupeOf(writtenOf(['[', ...words, '0]']), more);
  let length = 0;
  troupe.watch((note) => {
    if (note.type === 'arguments') length = note.index + note.text.length;
  });
  const cpuMs = await cpuMsOf(async () => void (await troupe.ask('c', 'go')));
  expect(length).toBe(65_536);
  // A copy of what was said with each piece takes minutes.
  expect(cpuMs).toBeLessThan(20_000);
});
