import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, ConversationId, Event } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { IS_DISTRIBUTED, openTroupe } from '../support/mode.ts';
import { untilHolds } from '../support/until-holds.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const newData = () => mkdtempSync(path.join(tmpdir(), 'troupe-renamed-'));
const call = (contains: string, name: string, args: object) => ({
  when: { contains, step: 1 },
  calls: [{ name, args }],
});
const agent = (id: string, tools: string[], ...rules: object[]) => ({
  id,
  provider: 'scripted' as const,
  tools,
  script: { rules },
});
const lead = agent('lead', ['delegate'], call('Go.', 'delegate', { to: 'assessor', task: 'Assess it.' }), {
  reply: 'The lead has heard.',
});
const assessorRules = [
  call('Assess it.', 'ask', { question: 'Which one?', to: 'people' }),
  call('Pay it.', 'pay', { amount: 40 }),
  { reply: 'Answer {{n}}.' },
];
const assessor = agent('assessor', ['ask', 'pay'], ...assessorRules);
const adjuster = { ...assessor, id: 'adjuster', aliases: ['assessor'] };

const paid: number[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  schema: z.object({ amount: z.number() }),
  needsApproval: true,
  run: ({ amount }) => {
    paid.push(amount);
    return Promise.resolve('paid');
  },
});

function open(agents: object[], data: string, more: Partial<TroupeInput> = {}): Promise<Troupe> {
  const definition = { agents, tools: [pay], ...more } as unknown as TroupeInput;
  return openTroupe(definition, { data, constants: { limits: { sweepMs: 500 } } });
}

async function all(troupe: Troupe, conversation = 'c'): Promise<Event[]> {
  return (await troupe.events(conversation, { limit: 500 })).events;
}

function said(events: readonly Event[]): string[] {
  return events.flatMap(({ kind, author, body }) =>
    kind === 'message' ? [`${author.id}: ${(body as { content: string }).content}`] : [],
  );
}

const holds = (check: () => Promise<boolean>) => untilHolds(async () => expect(await check()).toBe(true));

describe('an agent is renamed while others wait for it', () => {
  test('the question that it has asked is its own, and what is answered goes to it', async () => {
    const data = newData();
    {
      await using troupe = await open([lead, assessor], data);
      await troupe.send('c', { author: ANA, to: ['lead'], content: 'Go.' });
      await troupe.idle();
    }
    await using troupe = await open([lead, adjuster], data);
    const [task] = (await troupe.tasks('c', { open: true })).tasks;
    expect(task).toMatchObject({ owner: 'lead', assignee: 'adjuster' });
    const thread = task?.thread as ConversationId;
    const [question] = (await troupe.tasks(thread, { open: true })).tasks;
    expect(question).toMatchObject({ kind: 'question', owner: 'adjuster' });
    expect((await troupe.stuck()).stuck.filter(({ reason }) => reason.kind === 'undefined')).toEqual([]);
    const answer = { command: 'answer' as const, conversation: thread, question: question?.id ?? '' };
    await troupe.command({ ...answer, content: 'The first.' }, ANA);
    await holds(async () => said(await all(troupe)).includes('lead: The lead has heard.'));
    expect((await all(troupe)).find(({ kind }) => kind === 'delegation.ended')).toMatchObject({
      author: { id: 'adjuster' },
      body: { outcome: 'done', result: 'Answer 1.' },
    });
    expect((await troupe.actors(thread)).map(({ agent: id }) => id)).toEqual(['adjuster']);
    expect((await troupe.tasks('c', { open: true })).tasks).toEqual([]);
  });

  test('the call that waits for approval runs once, in its name', async () => {
    const data = newData();
    paid.length = 0;
    {
      await using troupe = await open([assessor], data);
      await troupe.send('c', { author: ANA, to: ['assessor'], content: 'Pay it.' });
      await troupe.idle();
    }
    await using troupe = await open([adjuster], data);
    const [request] = (await troupe.tasks('c', { open: true })).tasks;
    expect(request).toMatchObject({ kind: 'approval', owner: 'adjuster' });
    const decision = { command: 'decide' as const, conversation: 'c' as ConversationId, approved: true };
    const { id = '', argsHash = '' } = request ?? {};
    await troupe.command({ ...decision, request: id, argsHash }, ANA);
    await holds(async () => said(await all(troupe)).includes('adjuster: Answer 1.'));
    expect(paid).toEqual([40]);
  });

  test('a turn that was under way is finished once, under the id that it began with', async () => {
    const data = newData();
    const working = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const slow = defineTool({
      name: 'slow',
      description: 'Works.',
      schema: z.object({}),
      async run() {
        working.resolve();
        await done.promise;
        return 'worked';
      },
    });
    const rules = [call('Work.', 'slow', {}), { reply: 'Done after {{n}}.' }];
    const before = agent('assessor', ['slow'], ...rules);
    const after = { ...before, id: 'adjuster', name: 'The adjuster', aliases: ['assessor'] };
    {
      const troupe = await open([before], data, { tools: [slow] });
      await troupe.send('c', { author: ANA, to: ['assessor'], content: 'Work.' });
      await working.promise;
      const closed = troupe.close();
      done.resolve();
      await closed;
    }
    await using troupe = await open([after], data, { tools: [slow] });
    await troupe.idle();
    await holds(async () => (await all(troupe)).some(({ kind }) => kind === 'turn.done'));
    const events = await all(troupe);
    expect(events.filter(({ kind }) => kind === 'tool.result')).toHaveLength(1);
    expect(
      events.filter(({ kind }) => kind === 'turn.started' || kind === 'turn.done').map(({ turn }) => turn),
    ).toEqual(['c:assessor:1', 'c:assessor:1']);
    expect(said(events)).toEqual(['ana: Work.', 'adjuster: Done after 1.']);
    expect(await troupe.promptOf('c:assessor:1')).toMatchObject({ verified: true, agent: 'adjuster' });
    await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'More.' });
    expect((await all(troupe)).at(-1)).toMatchObject({ kind: 'turn.done', turn: 'c:adjuster:2' });
  });
});

describe('the past of a renamed agent', () => {
  test('its words are its own, others read them under the name of the time, and past prompts still verify', async () => {
    const data = newData();
    const peer = agent('peer', [], { reply: 'Peer {{n}}.' });
    {
      await using troupe = await open([assessor, peer], data);
      await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'First.' });
      await troupe.ask('c', { author: ANA, to: ['peer'], content: 'Second.' });
      await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'Third.' });
    }
    await using troupe = await open([adjuster, peer], data);
    const own = await troupe.prompt('c', 'adjuster');
    expect(own.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual([
      'Answer 1.',
      'Answer 2.',
    ]);
    await troupe.ask('c', { author: ANA, to: ['adjuster'], content: 'Fourth.' });
    await troupe.ask('c', { author: ANA, to: ['peer'], content: 'Fifth.' });
    const { messages } = await troupe.promptOf('c:peer:2');
    const told = messages.map(({ content }) => content).join('\n');
    expect(told).toMatch(/@assessor[^]*Answer 2\.[^]*@adjuster[^]*Answer 3\./);
    expect(told).toContain('@adjuster: adjuster, peer, called @assessor before');
    for (const turn of ['c:assessor:1', 'c:peer:1', 'c:assessor:2', 'c:adjuster:3', 'c:peer:2'])
      expect(await troupe.promptOf(turn), turn).toMatchObject({ verified: true });
    const second = await troupe.promptOf('c:assessor:2');
    const third = await troupe.promptOf('c:adjuster:3');
    expect(third.messages.slice(1, second.messages.length)).toEqual(second.messages.slice(1));
    expect((await troupe.verify('c')).problems).toEqual([]);
  });

  test('its former id is an address everywhere: messages, mentions, prompts, commands, turns', async () => {
    await using troupe = await open([adjuster], newData(), {
      defaults: { respondWhenUnaddressed: 'assessor' },
      routing: { by: 'rules', rules: [{ matches: 'claim', to: ['assessor'] }] },
    } as Partial<TroupeInput>);
    const { event } = await troupe.send('c', { author: ANA, to: ['@assessor'], content: 'One.' });
    expect(event.to).toEqual(['adjuster']);
    expect((await troupe.send('c', { author: ANA, content: 'A claim.' })).event.to).toEqual(['adjuster']);
    expect((await troupe.send('c', { author: ANA, content: 'Two.' })).event.to).toEqual(['adjuster']);
    await troupe.idle();
    expect(await troupe.prompt('c', 'assessor')).toMatchObject({ agent: 'adjuster' });
    await troupe.command({ command: 'pause', conversation: 'c', agent: 'assessor' } as never, ANA);
    expect(await troupe.actors('c')).toMatchObject([{ agent: 'adjuster', status: 'paused' }]);
    await troupe.command({ command: 'resume', conversation: 'c', agent: 'assessor' } as never, ANA);
    expect(await troupe.trace('c:adjuster:1')).toMatchObject({ agent: 'adjuster' });
  });

  test('what waited for the former id, after the new one has worked without knowing it, is asked again', async () => {
    const data = newData();
    {
      await using troupe = await open([{ ...assessor, whileBusy: 'queue' }], data);
      await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'First.' });
      await troupe.command({ command: 'pause', conversation: 'c', agent: 'assessor' } as never, ANA);
      await troupe.send('c', { author: ANA, to: ['assessor'], content: 'Waiting.' });
    }
    {
      await using troupe = await open([{ ...assessor, id: 'adjuster' }], data);
      await troupe.ask('c', { author: ANA, to: ['adjuster'], content: 'Second.' });
    }
    await using troupe = await open([adjuster], data);
    await troupe.ask('c', { author: ANA, to: ['adjuster'], content: 'Third.' });
    await troupe.idle();
    const turns = (await all(troupe)).filter(({ kind }) => kind === 'turn.done');
    const covered = turns.flatMap(({ body }) => (body as { covers: number[] }).covers);
    const asked = (await all(troupe)).find(
      ({ kind, author }) => kind === 'command' && author.kind === 'system',
    );
    expect(asked).toMatchObject({ to: ['adjuster'], body: { command: 'retry' } });
    expect(covered).toContain(asked?.seq);
    const waiting = (await all(troupe)).find(
      (event) => event.kind === 'message' && event.body.content === 'Waiting.',
    );
    expect(covered.filter((seq) => seq === waiting?.seq)).toHaveLength(1);
  });
});

describe('what is done with conversations of a renamed agent', () => {
  /** A turn that fails, one that is answered, and a person's words. */
  async function openPast(): Promise<Troupe> {
    const data = newData();
    const failing = {
      ...assessor,
      script: {
        rules: [{ when: { contains: 'Fail.' }, fail: { code: 'provider_refused' } }, ...assessorRules],
      },
    };
    {
      await using troupe = await open([failing], data);
      await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'My code is Quorvinal.' });
      await troupe.ask('c', { author: ANA, to: ['assessor'], content: 'Fail.' });
    }
    return open([adjuster], data);
  }

  test('a turn that failed before is asked for again by its id', async () => {
    await using troupe = await openPast();
    await troupe.command({ command: 'retry', turn: 'c:assessor:2' } as never, ANA);
    await holds(async () => said(await all(troupe)).some((each) => each.startsWith('adjuster: ')));
    await troupe.idle();
    expect((await all(troupe)).at(-1)).toMatchObject({ kind: 'turn.done', turn: 'c:adjuster:3' });
    expect(await troupe.diff('c:assessor:1', 'c:adjuster:3')).toBeDefined();
  });

  test('a fork and an import of an export go on with the same past', async () => {
    await using troupe = await openPast();
    const forked = await troupe.command(
      { command: 'fork', conversation: 'c', seq: 4, as: 'f' } as never,
      ANA,
    );
    expect(forked.kind).toBe('command');
    await troupe.ask('f', { author: ANA, to: ['assessor'], content: 'In the fork.' });
    const lines: string[] = [];
    for await (const line of troupe.export('c')) lines.push(line);
    await troupe.import(Readable.from(lines), { conversation: 'i' });
    await troupe.ask('i', { author: ANA, to: ['adjuster'], content: 'In the import.' });
    for (const conversation of ['f', 'i']) {
      const prompt = await troupe.prompt(conversation, 'adjuster');
      const own = prompt.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
      expect(own[0], conversation).toContain('Answer 1.');
      const last = (await all(troupe, conversation)).at(-1);
      expect(last, conversation).toMatchObject({ kind: 'turn.done', author: { id: 'adjuster' } });
      expect((await troupe.actors(conversation)).map((each) => each.agent)).toEqual(['adjuster']);
    }
  });

  test('an erasure leaves the ids of the log as they were', async () => {
    await using troupe = await openPast();
    await troupe.erase({ person: 'ana' });
    expect(JSON.stringify(await all(troupe))).not.toContain('Quorvinal');
    expect((await all(troupe))[0]).toMatchObject({ to: ['adjuster'], formerly: { to: ['assessor'] } });
    expect((await troupe.verify('c')).problems).toEqual([]);
  });
});

test.runIf(IS_DISTRIBUTED)(
  'workers of both versions side by side never run at once, and each message is answered once',
  async () => {
    const data = newData();
    let running = 0;
    let most = 0;
    const work = defineTool({
      name: 'work',
      description: 'Works.',
      schema: z.object({}),
      async run() {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return 'worked';
      },
    });
    const rules = [call('Work', 'work', {}), { reply: 'Done.' }];
    const before = agent('assessor', ['work'], ...rules);
    await using old = await open([before], data, { tools: [work] });
    await using now = await open([{ ...before, id: 'adjuster', aliases: ['assessor'] }], data, {
      tools: [work],
    });
    for (let n = 0; n < 12; n += 1) {
      const by = n % 3 === 0 ? now : old;
      const to = by === now ? 'adjuster' : 'assessor';
      await by.send('c', { author: ANA, to: [to], content: `Work ${n}.` });
    }
    const asked = (await all(now)).filter(({ kind, author }) => kind === 'message' && author.kind === 'user');
    const covered = async () =>
      (await all(now)).flatMap((event) => (event.kind === 'turn.done' ? event.body.covers : []));
    const seqs = asked.map(({ seq }) => seq);
    const answered = async () =>
      (await covered()).filter((seq) => seqs.includes(seq)).toSorted((a, b) => a - b);
    await holds(async () => (await answered()).length >= seqs.length);
    expect(await answered()).toEqual(seqs);
    expect(most).toBe(1);
  },
);

describe('a definition with former ids', () => {
  const problemsOf = (agents: object[], templates?: object[]) => {
    try {
      parseTroupe({ agents, tools: [pay], ...(templates && { templates }) });
      return [];
    } catch (error) {
      return (error as { data: { problems: string[] } }).data.problems;
    }
  };

  test('is refused if an agent has the id, or another claims it', () => {
    const plain = agent('other', [], { reply: 'Yes.' });
    expect(problemsOf([adjuster, assessor])).toEqual([
      'agents[0].aliases[0]: "assessor" is the id of an agent: no other has it as a former id',
    ]);
    expect(problemsOf([adjuster, { ...plain, aliases: ['assessor'] }])).toEqual([
      'agents[1].aliases[0]: "assessor" is a former id of @adjuster already',
    ]);
    expect(problemsOf([{ ...plain, aliases: ['no id'] }])).toEqual([
      expect.stringContaining('agents[0].aliases[0]: an agent id is 1 to 64'),
    ]);
    expect(problemsOf([plain], [{ ...plain, id: 'made', aliases: ['old'] }])).toEqual([
      'templates[0].aliases: only agents have former ids, not templates',
    ]);
  });

  test('may name its agents by either id', () => {
    const definition = parseTroupe({
      agents: [adjuster],
      tools: [pay],
      defaults: { respondWhenUnaddressed: 'assessor' },
      routing: { by: 'round', agents: ['assessor'] },
      schedules: [{ name: 's', cron: '@daily', conversation: 'c', to: 'assessor', content: 'Go.' }],
      budgets: { agents: { assessor: { tokens: 5 } } },
      workflows: [{ id: 'w', steps: [{ id: 's', agent: 'assessor', brief: 'Do it.' }] }],
    });
    expect(definition).toMatchObject({
      defaults: { respondWhenUnaddressed: 'adjuster' },
      routing: { agents: ['adjuster'] },
      schedules: [{ to: 'adjuster' }],
      budgets: { agents: { adjuster: { tokens: 5 } } },
      workflows: [{ steps: [{ agent: 'adjuster' }] }],
    });
  });
});
