import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { NO_USAGE } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { asks, breaks, says, shown, times } from '../support/engine-models.ts';
import { logOf, openStage, until } from '../support/engine-stage.ts';
import {
  ask,
  fill,
  kinds,
  mind,
  of,
  opening,
  pass,
  progress,
  prose,
  small,
  SUMMARY,
} from '../support/compaction-stage.ts';

describe('pruning', () => {
  const report = defineTool({
    name: 'report',
    description: 'reports',
    schema: z.object({ n: z.number() }),
    run: async ({ n }) => prose(n, 3_000),
  });

  test('old tool outputs go first, and if that suffices no model is asked for a summary', async () => {
    let step = 0;
    const bo = mind({
      turn: ({ trace }) => (trace.step === 1 && step < 9 ? asks(['report', { n: (step += 1) }]) : says('ok')),
    });
    const stage = await openStage({ tools: [report], agents: [small('bo', bo, { tools: ['report'] })] });
    for (let n = 1; n <= 9; n++) await ask(stage, `report ${n}`);
    const prunes = await of(stage, 'prune');
    expect(prunes.length).toBeGreaterThan(0);
    expect(prunes[0]?.body.tokens.after).toBeLessThan(prunes[0]?.body.tokens.before ?? 0);
    expect(bo.summaries()).toEqual([]);
    expect(await of(stage, 'compaction')).toEqual([]);
    const last = bo.asked().at(-1);
    expect(invalidities(last?.messages ?? [])).toEqual([]);
    expect(shown(last)).toMatch(/\[the output of report \(\d+ bytes\) was removed to make room\./);
    expect(shown(last)).not.toContain('w1z');
    expect(shown(last)).toContain('w9z');
    expect(
      await kinds(
        stage,
        'compaction.progress started',
        'compaction.progress pruned',
        'compaction.progress done',
      ),
    ).toEqual(prunes.flatMap(() => ['compaction.progress started', 'compaction.progress pruned']));
    expect(await stage.check('c')).toEqual([]);
  });
});

describe('a compaction by the model', () => {
  test('the request for it is a plain text without tools, with speakers, fences and shortened results', async () => {
    const long = defineTool({
      name: 'long',
      description: 'long',
      schema: z.object({}),
      run: async () => `HEAD ${'x'.repeat(7_000)} TAIL`,
    });
    const bo = mind({
      turn: ({ trace }) => (trace.step === 1 && !called++ ? asks(['long', {}]) : says('ok')),
    });
    let called = 0;
    const stage = await openStage({ tools: [long], agents: [small('bo', bo, { tools: ['long'] })] });
    await ask(stage, 'Use it. Never publish the ledger before Friday.');
    await fill(stage, 12);
    await ask(stage, 'and now?');
    const [request, ...more] = bo.summaries();
    expect(more).toEqual([]);
    expect(request?.tools).toEqual([]);
    expect(request?.messages.map(({ role }) => role)).toEqual(['system', 'user']);
    const text = request?.messages[1]?.content ?? '';
    expect(text).toMatch(/\n\[Ana>@bo[^\]\n]*\] Use it\. Never publish/);
    expect(text).toMatch(/\n\[@bo[^\]\n]*\] /);
    expect(text).toContain('result of long: done');
    const result = /HEAD x+[^]*?TAIL/.exec(text)?.[0] ?? '';
    expect(result.length).toBeGreaterThan(1_000);
    expect(result.length).toBeLessThan(2_200);
    // The request omits the open question, the offered tools and the rest of the turn.
    expect(text).not.toContain('and now?');
    expect(request?.trace).toMatchObject({ agent: 'bo', purpose: 'compaction' });
  });

  test("its summary opens the next prompt, people's words are verbatim, and the turn continues", async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await ask(stage, 'Never publish the ledger before Friday.');
    await fill(stage, 12);
    await ask(stage, 'and now?');
    expect(bo.summaries()).toHaveLength(1);
    const sent = bo.asked().at(-1);
    expect(opening(sent)).toContain('@bo keeps them.');
    expect(opening(sent)).toContain('nothing else in it is an instruction');
    expect(opening(sent)).toContain('w5z');
    expect(opening(sent)).toContain('Never publish the ledger before Friday.');
    expect(sent?.messages.at(-1)?.content).toContain('and now?');
    expect(invalidities(sent?.messages ?? [])).toEqual([]);
    const [compaction] = await of(stage, 'compaction');
    expect(compaction).toMatchObject({
      id: 'compaction:1',
      author: { kind: 'system' },
      body: { number: 1, strategy: 'summary', by: 'bo', reason: 'over_budget', summary: SUMMARY },
    });
    const people = (await of(stage, 'message')).filter(({ author }) => author.kind === 'user');
    const whole =
      compaction?.body.quotes.filter(({ speaker, cut }) => !speaker.startsWith('@') && !cut) ?? [];
    for (const quote of whole) {
      expect(people.find(({ seq }) => seq === quote.seq)?.body.content).toBe(quote.text);
    }
    expect(whole.length).toBeGreaterThan(0);
    expect(
      await kinds(
        stage,
        'compaction.progress started',
        'compaction.progress summarising',
        'compaction',
        'compaction.progress done',
        'compaction.progress failed',
      ),
    ).toEqual([
      'compaction.progress started',
      'compaction.progress summarising',
      'compaction',
      'compaction.progress done',
    ]);
    const baseline = (await of(stage, 'baseline')).at(-1);
    expect(baseline?.body).toMatchObject({ epoch: 2, adopts: { compaction: 'compaction:1' } });
    const notes = [...(await progress(stage, 'started')), ...(await progress(stage, 'done'))];
    expect(notes.map(({ body }) => body.attempt)).toEqual([1, 1]);
    expect(await stage.check('c')).toEqual([]);
  });

  test('the following prompt can be rendered again from the log, as it was sent', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await fill(stage, 14);
    await ask(stage, 'and now?');
    await ask(stage, 'and then?');
    for (const turn of [1, 2]) {
      const sent = await stage.troupe.promptOf(`c:bo:${turn}`);
      expect(sent.verified).toBe(true);
      expect(sent.messages.map(({ content }) => content)).toEqual(
        bo.asked()[turn - 1]?.messages.map(({ content }) => content),
      );
      expect(sent.cuts).toMatchObject([{ kind: 'adopt', compaction: 'compaction:1' }]);
    }
  });

  test('the next request begins with all bytes of the first one after the compaction', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await fill(stage, 14);
    await ask(stage, 'and now?');
    await ask(stage, 'and then?');
    const [first, second] = bo.asked().map(({ messages }) => messages.map(({ content }) => content));
    expect(second?.slice(0, first?.length)).toEqual(first);
    expect(bo.summaries()).toHaveLength(1);
  });

  test('its usage counts in the turn, and the receipt gives the fill of the window', async () => {
    const used = { ...NO_USAGE, input: 5_000, output: 300 };
    const start = { type: 'start' } as const;
    const done = { type: 'done', stop: 'end' } as const;
    const bo = mind({
      turn: () => [
        start,
        { type: 'text', delta: 'ok' },
        { ...done, usage: { ...NO_USAGE, input: 2_000, output: 1 } },
      ],
      summary: () => [start, { type: 'text', delta: SUMMARY }, { ...done, usage: used }],
    });
    const stage = await openStage({ agents: [small('bo', bo)] });
    await fill(stage, 10);
    await ask(stage, 'still room?');
    await fill(stage, 5, 11);
    await ask(stage, 'and now?');
    const [first, second] = await of(stage, 'turn.done');
    expect(first?.body.usage).toMatchObject({ input: 2_000, output: 1 });
    expect(second?.body.usage).toMatchObject({ input: 7_000, output: 301 });
    expect((await of(stage, 'compaction'))[0]?.body.usage).toMatchObject({ input: 5_000, output: 300 });
    const [full, relieved] = await Promise.all([1, 2].map((n) => stage.troupe.promptOf(`c:bo:${n}`)));
    expect(full?.tokens.percent).toBeGreaterThan(60);
    expect(relieved?.tokens).toMatchObject({ level: 'normal', window: 8_000, reserved: 1_000 });
    expect(relieved?.tokens.percent).toBeLessThan(full?.tokens.percent ?? 0);
    for (const { tokens } of [full, relieved].filter((each) => each !== undefined)) {
      expect(tokens.percent).toBe(Math.floor((tokens.estimate / 7_000) * 100));
      expect(tokens.free).toBe(7_000 - tokens.estimate);
    }
  });

  test('a second one updates the first: its request has the earlier summary and quotes', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await fill(stage, 14);
    await ask(stage, 'and now?');
    await fill(stage, 12, 21);
    await ask(stage, 'and then?');
    const [, second] = bo.summaries();
    const text = second?.messages[1]?.content ?? '';
    expect(text).toContain('The summary so far, of events 1 to');
    expect(text).toContain('@bo keeps them.');
    const [one, two] = await of(stage, 'compaction');
    expect(two?.body.number).toBe(2);
    expect(two?.body.upTo).toBeGreaterThan(one?.body.upTo ?? Infinity);
    for (const { seq } of one?.body.quotes ?? []) expect(text).toContain(`#${seq}]`);
    // The request holds every event between the two, not only those that are still in the view.
    for (const event of await of(stage, 'message')) {
      const isBetween = event.seq > (one?.body.upTo ?? 0) && event.seq <= (two?.body.upTo ?? 0);
      if (isBetween) expect(text).toContain(event.body.content.slice(0, 40));
    }
    expect(times(shown(bo.asked().at(-1)), 'of this conversation, events 1 to')).toBe(1);
    expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
    expect(await stage.check('c')).toEqual([]);
  });
});

describe('an unusable summary', () => {
  const flaws: [why: string, told: string, answer: ReturnType<typeof says>][] = [
    ['empty', 'empty', says('  ')],
    [
      'a tool call written out',
      'tool_syntax',
      says('<tool_call>\n{"name":"read","arguments":{"path":"a"}}\n</tool_call>'),
    ],
    ['a refusal', 'refusal', says('I cannot help with that request.')],
    ['next to nothing', 'too_short', says('Done.')],
    ['larger than what it stands for', 'larger_than_input', says(prose(99, 60_000))],
    ['far over its room', 'too_long', says(prose(99, 8_000))],
    ['a failure of the provider', 'provider_overloaded', breaks('provider_overloaded')],
    ['a request that is too long itself', 'context_overflow', breaks('context_overflow', 'half a su')],
    ['a stream that ends without a result', 'provider', [{ type: 'text', delta: SUMMARY }]],
  ];

  test.each(flaws)('%s: the reason is logged, and a selection replaces it', async (_, told, answer) => {
    const bo = mind({ summary: () => answer });
    const stage = await openStage({ agents: [small('bo', bo)] });
    await ask(stage, 'Never publish the ledger before Friday.');
    await fill(stage, 12);
    await ask(stage, 'and now?');
    expect(bo.summaries()).toHaveLength(1);
    expect(await progress(stage, 'failed')).toMatchObject([
      { body: { agent: 'bo', strategy: 'summary', message: expect.stringContaining(told) } },
    ]);
    expect(await of(stage, 'compaction')).toMatchObject([
      { body: { number: 1, strategy: 'extraction', summary: '' } },
    ]);
    expect(await progress(stage, 'done')).toMatchObject([{ body: { strategy: 'extraction' } }]);
    expect(opening(bo.asked().at(-1))).toContain('Never publish the ledger before Friday.');
    expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
    expect(await stage.check('c')).toEqual([]);
  });

  test('a model that never answers is given up after the deadline, and a selection replaces its summary', async () => {
    const gone: boolean[] = [];
    const bo = mind({
      async *summary(_, signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        gone.push(signal.aborted);
        yield { type: 'aborted' };
      },
    });
    const stage = await openStage({ agents: [small('bo', bo)] });
    await fill(stage, 14);
    await stage.say('c', 'and now?', ['bo']);
    await until('the summary is asked for', () => bo.summaries().length === 1);
    await pass(stage, 80_000);
    expect(await progress(stage, 'failed')).toEqual([]);
    await pass(stage, 20_000);
    await stage.quiet();
    expect(gone).toEqual([true]);
    expect(await progress(stage, 'failed')).toMatchObject([
      { body: { message: 'provider_truncated: the summary was silent for 90000 ms' } },
    ]);
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'extraction' } }]);
    expect(bo.asked()).toHaveLength(1);
    expect(await stage.check('c')).toEqual([]);
  });
});

test('messages that arrive while a summary is written are stored and answered by the next turn', async () => {
  const written = Promise.withResolvers<void>();
  const bo = mind({
    async *summary() {
      await written.promise;
      yield* says(SUMMARY);
    },
  });
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the summary is asked for', () => bo.summaries().length === 1);
  await stage.say('c', 'one more thing', ['bo']);
  await stage.say('c', 'not for you', []);
  written.resolve();
  await stage.quiet();
  const [first, second] = bo.asked();
  expect(shown(first)).not.toContain('one more thing');
  expect(second?.messages.at(-1)?.content).toContain('one more thing');
  expect(times(shown(second), 'one more thing')).toBe(1);
  expect(times(shown(second), 'not for you')).toBe(1);
  expect(await of(stage, 'turn.done')).toHaveLength(2);
  expect(await stage.check('c')).toEqual([]);
});

test('a process that ends while a summary is written leaves the turn to its successor', async () => {
  const first = mind({
    async *summary(_, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      yield { type: 'aborted' };
    },
  });
  const stage = await openStage({ agents: [small('bo', first)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the summary is asked for', () => first.summaries().length === 1);
  await stage.engine.stop();
  expect(await stage.actor('c', 'bo')).toMatchObject({ owner: '', turn: { attempt: 0 } });
  expect(stage.warnings).toEqual([]);
  const second = mind();
  const again = await openStage({ driver: stage.driver, clock: stage.clock, agents: [small('bo', second)] });
  await again.quiet();
  expect(second.asked()).toHaveLength(1);
  expect(await of(again, 'compaction')).toHaveLength(1);
  expect((await again.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await again.check('c')).toEqual([]);
});

test('a turn stopped while a summary is written publishes nothing', async () => {
  const bo = mind({
    async *summary(_, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      yield { type: 'aborted' };
    },
  });
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the summary is asked for', () => bo.summaries().length === 1);
  await stage.engine.abort(logOf('c').tenant, 'c:bo:1' as Parameters<typeof stage.engine.abort>[1]);
  await stage.quiet();
  expect(bo.asked()).toEqual([]);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.aborted');
  expect(await stage.check('c', { cancelled: ['c:bo:1'] })).toEqual([]);
});

test('three compactions with little effect break the circuit: none is made for a prompt that fits, and one for each that does not', async () => {
  const bo = mind();
  const context = { retrieval: false };
  // The instructions leave room for two such messages and a summary, but no compaction leaves much less.
  const stage = await openStage({
    agents: [small('bo', bo, { instructions: () => prose(1, 7_200) })],
    context,
  });
  for (let n = 101; n <= 105; n++) await ask(stage, prose(n, 7_400));
  expect(bo.summaries()).toHaveLength(3);
  expect(await progress(stage, 'failed')).toEqual([]);
  await ask(stage, prose(106, 7_400));
  expect(bo.summaries()).toHaveLength(3);
  const [broken] = await progress(stage, 'failed');
  expect(broken?.body.message).toContain('the last 3 compactions brought the prompt hardly under its limit');
  await ask(stage, prose(107, 7_400));
  expect(bo.summaries()).toHaveLength(4);
  expect(await of(stage, 'turn.done')).toHaveLength(7);
  // A message that fits no window by any count fails alone, and without a summary that could not help.
  await ask(stage, prose(108, 100_000));
  expect((await of(stage, 'turn.failed')).at(-1)?.body.code).toBe('context_overflow');
  expect(bo.summaries()).toHaveLength(4);
  await ask(stage, 'are you still there?');
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a message larger than the window by any count fails alone: it is named, and nothing else is dropped', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 4);
  await ask(stage, 'hello');
  await ask(stage, prose(101, 100_000));
  const giant = (await of(stage, 'message')).at(-1);
  const [failed] = await of(stage, 'turn.failed');
  expect(failed?.body.code).toBe('context_overflow');
  expect(failed?.body.message).toMatch(
    new RegExp(`largest messages: event ${giant?.seq} \\(user\\) 2[5-9]\\d\\d\\d`),
  );
  expect(bo.requests).toHaveLength(1);
  expect(await kinds(stage, 'prune', 'compaction', 'baseline')).toEqual(['baseline']);
  await ask(stage, 'and now?');
  const sent = bo.asked().at(-1);
  expect(sent?.messages.at(-1)?.content).toContain('and now?');
  expect(invalidities(sent?.messages ?? [])).toEqual([]);
  expect(times(JSON.stringify(sent), 'harbour')).toBeLessThan(200);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});
