import { expect, test } from 'vitest';
import * as z from 'zod';
import type { TurnNote } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { openTroupe } from '../support/mode.ts';
import { asks, inOrder, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { UMA } from '../support/company.ts';
import { createWaits } from '../support/waits.ts';

const scripted = (rules: object[], more: object = {}) =>
  ({ id: 'bo', provider: 'scripted', script: { rules }, ...more }) as AgentInput;

/** What the turns of a troupe do besides their words, and the kinds of its events, in the order in which a watcher hears of them. */
function listen(troupe: Troupe) {
  const heard: TurnNote[] = [];
  const order: string[] = [];
  const { look, until } = createWaits();
  troupe.watch((note) => {
    if (note.type === 'event') order.push(note.event.kind);
    else if (note.type !== 'state' && note.type !== 'text') {
      heard.push(note);
      order.push(note.type);
    }
    look();
  });
  return { heard, order, until };
}

test('a call, its progress and its result are heard before anything of the turn is committed', async () => {
  const open = Promise.withResolvers<void>();
  const copy = defineTool({
    name: 'copy',
    description: '',
    schema: z.object({ from: z.string() }),
    async run(_, { progress }) {
      progress({ text: 'copying', done: 1, total: 3 });
      await open.promise;
      progress('almost done');
      return 'copied';
    },
  });
  const note = defineTool({ name: 'note', description: '', schema: z.object({}), run: () => 'noted' });
  await using troupe = await openTroupe({
    agents: [
      scripted(
        [
          {
            when: { step: 1 },
            calls: [
              { name: 'copy', args: { from: 'a' } },
              { name: 'note', args: {} },
            ],
          },
          { reply: 'Done.' },
        ],
        { tools: ['copy', 'note'] },
      ),
    ],
    tools: [copy, note],
  });
  const { heard, order, until } = listen(troupe);
  await troupe.send('c', { author: UMA, content: 'copy it', to: ['bo'] });
  // The other call still runs: a result is heard as soon as it is there.
  await until(() => heard.some(({ type }) => type === 'result'));
  expect(heard.filter(({ type }) => type === 'result')).toMatchObject([{ name: 'note', text: 'noted' }]);
  expect(heard.filter(({ type }) => type === 'progress')).toMatchObject([
    { name: 'copy', text: 'copying', done: 1, total: 3, turn: 'c:bo:1', step: 1, attempt: 1 },
  ]);
  expect(order).not.toContain('step');
  open.resolve();
  await troupe.idle();
  await until(() => order.includes('turn.done'));
  const ofCopy = heard.filter((each) => 'name' in each && each.name === 'copy');
  expect(ofCopy.map(({ type }) => type)).toEqual(['arguments', 'called', 'progress', 'progress', 'result']);
  expect(ofCopy).toMatchObject([
    { index: 0, text: '{"from":"a"}' },
    { args: '{"from":"a"}' },
    { text: 'copying' },
    { text: 'almost done' },
    { outcome: 'done', text: 'copied' },
  ]);
  expect(new Set(ofCopy.map((each) => 'call' in each && each.call)).size).toBe(1);
  expect(order.lastIndexOf('result')).toBeLessThan(order.indexOf('tool.result'));
});

test('nothing of it is in the log or in the next prompt', async () => {
  const work = defineTool({
    name: 'work',
    description: '',
    schema: z.object({}),
    run: (_, { progress }) => {
      progress('a secret stage');
      return 'ok';
    },
  });
  await using troupe = await openTroupe({
    agents: [scripted([{ when: { step: 1 }, calls: [{ name: 'work', args: {} }] }, {}], { tools: ['work'] })],
    tools: [work],
  });
  await troupe.ask('c', 'go');
  const { events } = await troupe.events('c');
  const next = await troupe.prompt('c', 'bo');
  expect(JSON.stringify([events, next])).not.toContain('a secret stage');
});

test('frequent progress is joined: the first report, and the last of each pause', async () => {
  const clock = createFakeClock();
  const open = Promise.withResolvers<void>();
  const steps = Promise.withResolvers<(report: string) => void>();
  const busy = defineTool({
    name: 'busy',
    description: '',
    schema: z.object({}),
    async run(_, { progress }) {
      for (let at = 1; at <= 1_000; at += 1) progress({ done: at });
      steps.resolve(progress);
      await open.promise;
      return 'ok';
    },
  });
  const heard: TurnNote[] = [];
  const model = inOrder(asks(['busy', {}]), says('ok'));
  const stage = await openStage({ clock, agents: [{ id: 'bo', model, tools: ['busy'] }], tools: [busy] });
  stage.deps.onLive = (note) => void (note.type === 'progress' && heard.push(note));
  await stage.say('c', 'go', ['bo']);
  const progress = await steps.promise;
  expect(heard).toMatchObject([{ done: 1 }]);
  await clock.advance(100);
  expect(heard).toMatchObject([{ done: 1 }, { done: 1_000 }]);
  progress('the last word');
  open.resolve();
  await stage.quiet();
  expect(heard.at(-1)).toMatchObject({ text: 'the last word' });
  progress('too late');
  expect(heard).toHaveLength(3);
});

test('arguments, progress and results are shown in bounds, and redacted like what is stored', async () => {
  const long = defineTool({
    name: 'long',
    description: '',
    schema: z.object({ words: z.string() }),
    run: (_, { progress }) => {
      // The second one begins just before the place where progress is cut.
      const key = 'sk_live_abcdefghijklmnop1234';
      progress(`key ${key} ${'p'.repeat(957)} ${key} ${'p'.repeat(50_000)}`);
      return `key sk_live_abcdefghijklmnop1234 ${'r'.repeat(50_000)}`;
    },
  });
  await using troupe = await openTroupe({
    agents: [
      scripted(
        [
          { when: { step: 1 }, calls: [{ name: 'long', args: { words: 'a'.repeat(90_000) } }] },
          { reply: 'ok' },
        ],
        { tools: ['long'] },
      ),
    ],
    tools: [long],
    redact: (text) => text.replaceAll('sk_live_abcdefghijklmnop1234', '[key]'),
  });
  const { heard } = listen(troupe);
  await troupe.ask('c', 'go');
  const sizes = Object.fromEntries(heard.map((note) => [note.type, JSON.stringify(note).length]));
  expect(sizes['arguments']).toBeLessThan(67_000);
  expect(sizes['called']).toBeLessThan(5_000);
  expect(sizes['progress']).toBeLessThan(1_500);
  expect(sizes['result']).toBeLessThan(5_000);
  const shown = heard.filter(({ type }) => type === 'progress' || type === 'result');
  expect(JSON.stringify(shown)).not.toContain('sk_l');
  expect(shown.map((note) => ('text' in note ? note.text?.slice(0, 9) : ''))).toEqual([
    'key [key]',
    'key [key]',
  ]);
});

test('what a failed model call had said is void, and its repetition begins anew', async () => {
  await using troupe = await openTroupe({
    agents: [
      scripted([
        {
          when: { call: 1 },
          reply: 'half of',
          fail: { after: 4, code: 'provider_overloaded', message: 'busy' },
        },
        { reply: 'all of it' },
      ]),
    ],
  });
  const told: unknown[] = [];
  troupe.watch((note) => {
    if (note.type === 'text') told.push([note.round, note.index, note.text]);
    if (note.type === 'void') told.push([note.round, note.type]);
  });
  await troupe.ask('c', 'go');
  expect(told).toEqual([
    [1, 0, 'half'],
    [1, 'void'],
    [2, 0, 'all of it'],
  ]);
});
