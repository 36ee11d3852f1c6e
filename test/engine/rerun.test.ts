import { expect, test } from 'vitest';
import * as z from 'zod';
import type { CommandOf, ConversationId, Event, TurnId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { forkedAs } from '../support/fork-stage.ts';

const TURN = 'c:bo:2' as TurnId;

/** Looks up what it was asked for, pays if the stock is low, then answers with what it has read. */
const bo = () =>
  modelOf(async function* (request) {
    const { messages } = request;
    const tools = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    if (asked.includes('hello')) return yield* says('hello to you');
    const what = asked.includes('pears') ? 'pears' : 'apples';
    if (tools.length === 0) return yield* asks(['stock', { what }]);
    if (tools.at(-1)?.startsWith('0') && tools.length === 1) return yield* asks(['pay', { for: what }]);
    yield* says(`${what}: ${tools.join(' | ')}`);
  });

async function begun(): Promise<{ stage: Stage; model: ReturnType<typeof bo>; ran: string[] }> {
  const ran: string[] = [];
  const tool = (name: string, result: string) =>
    defineTool({
      name,
      description: name,
      schema: z.looseObject({}),
      run: () => {
        ran.push(name);
        return result;
      },
    });
  const model = bo();
  const stage = await openStage({
    tools: [tool('stock', '40 in stock'), tool('pay', 'paid')],
    agents: [
      { id: 'bo', model, tools: ['stock', 'pay'], instructions: () => 'Be brief.' },
      {
        id: 'cy',
        model: modelOf(async function* () {
          yield* says('good morning');
        }),
      },
    ],
  });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  await stage.say('c', 'are there apples?', ['bo', 'cy']);
  await stage.quiet();
  expect(ran).toEqual(['stock']);
  return { stage, model, ran };
}

async function again(
  stage: Stage,
  about: Omit<CommandOf<'rerun'>, 'command' | 'turn'> = {},
): Promise<{ fork: string; turn: string; events: Event[] }> {
  const fork = forkedAs(await stage.troupe.command({ command: 'rerun', turn: TURN, ...about }, ANA));
  await stage.quiet();
  expect(await stage.check(fork)).toEqual([]);
  return { fork, turn: `${fork}:bo:2`, events: await stage.events(fork) };
}

const call = async (stage: Stage) =>
  (await stage.events('c')).flatMap((event) => (event.kind === 'tool.result' ? event.body.call : []))[0] ??
  '';

test('a turn is run again in a fork with the same prompts, its calls are answered from the record, and nobody else wakes', async () => {
  const { stage, model, ran } = await begun();
  const before = model.requests.length;
  const original = await stage.events('c');
  const { fork, turn, events } = await again(stage);
  expect(fork).toMatch(/^c-fork-\d+$/);
  const [first, second] = model.requests.slice(before);
  const plain = (text: string) => text.replaceAll(/#\d+/g, '#');
  expect(plain(shown(first))).toBe(plain(shown(model.requests[before - 2])));
  expect(plain(shown(second))).toBe(plain(shown(model.requests[before - 1])));
  expect(ran).toEqual(['stock']);
  expect(events.filter(({ kind }) => kind === 'turn.started').map((event) => event.turn)).toEqual([
    `${fork}:bo:1`,
    turn,
  ]);
  expect((await stage.events('c')).slice(0, original.length)).toEqual(original);
  expect(await stage.troupe.promptOf(turn, 1)).toMatchObject({ verified: true });
  const compared = await stage.troupe.compare(TURN, turn);
  expect(compared).toMatchObject({
    rerun: { turn: TURN, tools: 'recorded' },
    a: { status: 'done', words: 'apples: 40 in stock', steps: 2 },
    b: { status: 'done', words: 'apples: 40 in stock', steps: 2, turn },
    words: [{ change: 'equal', text: 'apples: 40 in stock' }],
    calls: [{ name: 'stock', same: true }],
    omitted: 0,
  });

  await stage.say(fork, 'hello again', ['bo']);
  await stage.quiet();
  expect((await stage.events(fork)).at(-1)).toMatchObject({ kind: 'turn.done', turn: `${fork}:bo:3` });
  expect(await stage.check(fork)).toEqual([]);
});

test('with another message, a call that the record lacks is refused, or made if that is allowed', async () => {
  const { stage, ran } = await begun();
  const change = { kind: 'message', content: 'are there pears?' } as const;
  const refused = await again(stage, { change, as: 'pears' as ConversationId });
  expect(ran).toEqual(['stock']);
  expect(refused.events.find((event) => event.kind === 'command')).toMatchObject({
    author: ANA,
    body: { command: 'fork', from: { conversation: 'c' }, rerun: { turn: TURN, change, tools: 'recorded' } },
  });
  expect(await stage.troupe.compare(TURN, refused.turn)).toMatchObject({
    rerun: { change },
    calls: [
      {
        name: 'stock',
        same: false,
        a: { args: '{"what":"apples"}', outcome: 'done', result: '40 in stock' },
        b: { args: '{"what":"pears"}', outcome: 'failed', result: expect.stringContaining('not run') },
      },
    ],
  });
  const made = await again(stage, { change, tools: 'run' });
  expect(ran).toEqual(['stock', 'stock']);
  expect((await stage.troupe.compare(TURN, made.turn)).words).toEqual([
    { change: 'removed', text: 'apples' },
    { change: 'added', text: 'pears' },
    { change: 'equal', text: ': 40 in stock' },
  ]);
  // The same command again finds the same fork, and its turn is over.
  const events = await stage.events('pears');
  expect((await again(stage, { change, as: 'pears' as ConversationId })).events).toEqual(events);
  await expect(again(stage, { as: 'pears' as ConversationId })).rejects.toMatchObject({
    code: 'command_refused',
  });
});

test('with another result of a call, the model goes on from there', async () => {
  const { stage, model, ran } = await begun();
  const before = model.requests.length;
  const change = { kind: 'toolResult', call: await call(stage), result: '0 in stock' } as const;
  const { turn } = await again(stage, { change });
  // The step before the result is not asked again, and the payment that follows is not made.
  expect(model.requests.slice(before).map(({ trace }) => trace.step)).toEqual([2, 3]);
  expect(ran).toEqual(['stock']);
  expect(await stage.troupe.compare(TURN, turn)).toMatchObject({
    b: { words: expect.stringContaining('apples: 0 in stock | [not run'), steps: 3 },
    calls: [
      { name: 'stock', same: false, b: { outcome: 'done', result: '0 in stock' } },
      { name: 'pay', a: null, b: { outcome: 'failed' } },
    ],
  });
  expect(await stage.troupe.promptOf(turn, 3)).toMatchObject({ verified: true });
});

test('with other instructions or another model, that turn alone has them', async () => {
  const { stage, model } = await begun();
  const before = model.requests.length;
  const instructed = await again(stage, { change: { kind: 'instructions', text: 'Answer in verse.' } });
  const system = () => model.requests.at(-1)?.messages.filter(({ role }) => role === 'system') ?? [];
  expect(JSON.stringify(system())).toContain('Answer in verse.');
  expect(JSON.stringify(system())).not.toContain('Be brief.');
  expect(await stage.troupe.promptOf(instructed.turn)).toMatchObject({ verified: true });
  await stage.say(instructed.fork, 'hello again', ['bo']);
  await stage.quiet();
  expect(JSON.stringify(system())).toContain('Be brief.');
  expect(await stage.check(instructed.fork)).toEqual([]);

  const { turn, fork } = await again(stage, { change: { kind: 'model', model: 'another' } });
  expect(model.requests.at(-1)).toMatchObject({ model: 'another' });
  expect(await stage.troupe.compare(TURN, turn)).toMatchObject({ b: { model: 'scripted another' } });
  await stage.say(fork, 'hello again', ['bo']);
  await stage.quiet();
  expect(model.requests.at(-1)?.model).toBe(model.requests[before - 1]?.model);
});

test('what cannot be run again is refused with the reason', async () => {
  const { stage } = await begun();
  const { troupe } = stage;
  const rerun = (about: object) => troupe.command({ command: 'rerun', turn: TURN, ...about }, ANA);
  const refusals = [
    [{ turn: 'c:bo:9' }, 'turn_unknown', 'there is no turn "c:bo:9"'],
    [{ turn: 'nowhere:bo:1' }, 'turn_unknown', 'there is no turn'],
    [{ change: { kind: 'toolResult', call: 'x', result: '' } }, 'event_invalid', 'no result of a call "x"'],
    [{ change: { kind: 'model', model: 'm', provider: 'nobody' } }, 'event_invalid', 'known: scripted'],
    [{ change: { kind: 'voice' } }, 'event_invalid', 'change'],
  ] as const;
  for (const [about, code, message] of refusals)
    await expect(rerun(about), code).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  await expect(troupe.compare(TURN, 'c:bo:9')).rejects.toMatchObject({ code: 'turn_unknown' });
  await expect(
    troupe.forTenant('other').command({ command: 'rerun', turn: TURN }, ANA),
  ).rejects.toMatchObject({ code: 'turn_unknown' });
  expect((await troupe.conversations()).map(({ id }) => id)).toEqual(['c']);
});
