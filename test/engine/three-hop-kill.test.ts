import { expect, test } from 'vitest';
import * as z from 'zod';
import { type Event, NO_USAGE } from '../../src/events/index.ts';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { forever } from '../support/engine-driver.ts';
import { modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, type Stage } from '../support/engine-stage.ts';
import { allLogs, type Play, type Played, playKilledAt } from '../support/killed-play.ts';
import { withoutTimes } from '../support/without-times.ts';

/** Makes the same call for the same request, in every process. */
function calls(request: ModelRequest, ...wanted: [name: string, args: object][]): ModelEvent[] {
  const { turn, step } = request.trace;
  return [
    { type: 'start' },
    { type: 'text', delta: 'let me see' },
    ...wanted.map(([name, args], index) => ({
      type: 'call' as const,
      call: { id: `${turn}/${step}/${index}`, name, args: JSON.stringify(args) },
    })),
    { type: 'done', stop: 'calls', usage: NO_USAGE },
  ];
}

type Says = (said: string, request: ModelRequest) => ModelEvent[];

/** Answers are a function of the request, so that every process answers alike. */
function talks(answer: Says) {
  return modelOf(async function* (request) {
    yield* answer(shown(request), request);
  });
}

const CHAIN: Play = {
  options: {
    agents: [
      { id: 'bo', tools: ['delegate'], model: gives('cy', 'count the fleet', 'four ships, cy says') },
      { id: 'cy', tools: ['delegate'], model: gives('di', 'count the harbour', 'four ships') },
      { id: 'di', model: talks(() => says('four')) },
    ],
  },
  act: begin,
};

function gives(to: string, task: string, result: string) {
  return talks((said, request) =>
    said.includes('four') ? says(result) : calls(request, ['delegate', { to, task }]),
  );
}

async function begin(stage: Stage): Promise<void> {
  if ((await stage.store.head(LOG)) > 0) return;
  await stage.say('c', 'how many ships?', ['bo'], 'begin');
}

const LOG = { tenant: 'default' as Event['tenant'], conversation: 'c' as Event['conversation'] };

/** The logs without the parts that depend on the clock. */
async function told(stage: Stage): Promise<Record<string, unknown[]>> {
  const logs = await allLogs(stage);
  return Object.fromEntries([...logs].map(([id, events]) => [id, events.map(timeless)]));
}

function timeless({ id, seq, author, to, kind, turn, body, hop }: Event): unknown {
  const { deadline: _, upTo: __, tree: ___, ...rest } = withoutTimes(body);
  return { id, seq, author: author.id, to, kind, turn, hop, body: rest };
}

async function problems(stage: Stage): Promise<unknown[]> {
  const ids = [...(await allLogs(stage)).keys()];
  return (await Promise.all(ids.map((id) => stage.check(id)))).flat();
}

/** Kills the process before and after each write of an undisturbed play. */
async function killEverywhere(
  play: Play,
  check: (played: Played, where: string) => Promise<void>,
): Promise<void> {
  const { points, driver } = await playKilledAt(0, play);
  await driver.close();
  for (let at = 1; at <= points.length; at++) {
    const played = await playKilledAt(at, play);
    const where = `killed at ${at} of ${points.length}: ${JSON.stringify(points[at - 1])}`;
    expect(played.died, where).toBe(true);
    expect(await problems(played.stage), where).toEqual([]);
    await check(played, where);
    await played.driver.close();
  }
  console.log(`killed at each of ${points.length} points`);
}

test('a process that dies anywhere in a chain of three changes no message', async () => {
  const calm = await playKilledAt(0, CHAIN);
  const expected = await told(calm.stage);
  expect(Object.keys(expected)).toHaveLength(3);
  expect(expected['c']?.at(-2)).toMatchObject({ kind: 'message', body: { content: 'four ships, cy says' } });
  await killEverywhere(CHAIN, async ({ stage }, where) => {
    expect(await told(stage), where).toEqual(expected);
  });
}, 300_000);

/**
 * @bo asks a person, has a call approved, and opens two tasks of which the first result is enough: @di never has one.
 */
function dealing(launched: Set<string>): Play {
  const launch = defineTool({
    name: 'launch',
    description: 'launches',
    schema: z.object({}),
    idempotent: true,
    needsApproval: true,
    run(_, { effect }) {
      launched.add(effect);
      return 'it flies';
    },
  });
  const bo = talks((said, request) => {
    if (said.includes('four ships')) return says('all told');
    if (said.includes('it flies')) return calls(request, ...['cy', 'di'].map(first));
    if (said.includes('crimson')) return calls(request, ['launch', {}]);
    return calls(request, ['ask', { question: 'which colour?' }]);
  });
  return {
    options: {
      tools: [launch],
      agents: [
        { id: 'bo', tools: ['ask', 'launch', 'delegate'], model: bo },
        { id: 'cy', model: talks(() => says('four ships')) },
        { id: 'di', model: modelOf(() => silence()) },
      ],
    },
    async act(stage) {
      await begin(stage);
      const { tasks } = await stage.troupe.tasks('c', { open: true });
      const { conversation } = LOG;
      for (const { id, kind } of tasks) {
        if (kind === 'question')
          await stage.troupe.command(
            { command: 'answer', conversation, question: id, content: 'crimson' },
            ANA,
          );
        if (kind === 'approval')
          await stage.troupe.command({ command: 'decide', conversation, request: id, approved: true }, ANA);
      }
    },
  };
}

function first(to: string): [string, object] {
  return ['delegate', { to, task: 'count', until: 'first' }];
}

/** Never produces anything; the caller can only give up. */
async function* silence(): AsyncGenerator<ModelEvent> {
  yield { type: 'start' };
  await forever();
}

test('nor does one that dies during a question, an approval, or the wait for the second of two results', async () => {
  const launched = new Set<string>();
  const play = dealing(launched);
  const calm = await playKilledAt(0, play);
  const expected = await told(calm.stage);
  expect(expected['c']?.filter((event) => (event as Event).kind === 'message')).toHaveLength(2);
  // The position of @di at its cancellation may vary.
  const thread =
    (await calm.stage.troupe.tasks('c')).tasks.find(({ assignee }) => assignee === 'di')?.thread ?? '';
  expect(expected[thread]).toBeDefined();
  await killEverywhere(play, async ({ stage }, where) => {
    const logs = await told(stage);
    expect({ ...logs, [thread]: [] }, where).toEqual({ ...expected, [thread]: [] });
    expect((await stage.troupe.tasks(thread)).thread?.isOpen, where).toBe(false);
    expect(
      (logs[thread] as Event[]).filter(({ kind }) => kind === 'message'),
      where,
    ).toEqual([]);
    expect(await stage.troupe.tasks('c', { open: true }), where).toMatchObject({ tasks: [] });
  });
  expect(launched.size).toBe(1);
}, 300_000);
