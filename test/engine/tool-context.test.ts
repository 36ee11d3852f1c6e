import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import type { Author } from '../../src/events/index.ts';
import { createApp } from '../../src/http/api/index.ts';
import { defineTool, type ToolContext } from '../../src/tools/tool.ts';
import { BEN, decide, requestIn } from '../support/approvals.ts';
import { tapDriver } from '../support/engine-driver.ts';
import { asks, gated, inOrder, says } from '../support/engine-models.ts';
import { ANA, openStage, until } from '../support/engine-stage.ts';
import { openDriver, openTroupe } from '../support/mode.ts';

interface App {
  rates: Map<string, number>;
}
type Told = ToolContext<App, { locale: string }>;

/** A tool that notes what it is told. */
function looker(needsApproval = false) {
  const told: Told[] = [];
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    schema: z.object({}),
    needsApproval,
    needs: [],
    run(_, context: Told) {
      told.push(context);
      return 'seen';
    },
  });
  return { told, look };
}

const idsOf = (authors: readonly Author[] = []) => authors.map(({ id }) => id);

test('a tool is told who asked, where, and for whom it runs', async () => {
  const { told, look } = looker();
  const model = inOrder(asks(['look', {}]), says('done'));
  const stage = await openStage({ tools: [look], agents: [{ id: 'bo', model, tools: ['look'] }] });
  await stage.say('c', 'look', ['bo']);
  await stage.quiet();
  expect(told).toMatchObject([
    { tenant: 'default', conversation: 'c', agent: 'bo', turn: 'c:bo:1', author: ANA, authors: [ANA] },
  ]);
  expect(told[0]?.forTools).toBeNull();
});

test('a turn that answers several people names them all, and the last who spoke', async () => {
  const { told, look } = looker();
  const first = gated(says('a moment'), 1);
  const rest = inOrder(asks(['look', {}]), says('done'));
  let turns = 0;
  const model = {
    ...first,
    stream: (...given: Parameters<typeof first.stream>) =>
      ((turns += 1) === 1 ? first : rest).stream(...given),
  };
  const stage = await openStage({ tools: [look], agents: [{ id: 'bo', model, tools: ['look'] }] });
  await stage.say('c', 'wait', ['bo']);
  await first.reached();
  await stage.troupe.send('c', { author: BEN, content: 'look', to: ['bo'] });
  await stage.say('c', 'look twice', ['bo']);
  first.open();
  await stage.quiet();
  expect(told[0]?.author).toEqual(ANA);
  expect(idsOf(told[0]?.authors).toSorted()).toEqual([ANA.id, BEN.id].toSorted());
});

test('an approved call runs for who asked, and not for who approved it', async () => {
  const { told, look } = looker(true);
  const model = inOrder(asks(['look', {}]), says('done'));
  const stage = await openStage({ tools: [look], agents: [{ id: 'bo', model, tools: ['look'] }] });
  await stage.troupe.send('c', { author: ANA, content: 'look', to: ['bo'], forTools: { locale: 'de' } });
  await stage.quiet();
  await decide(stage.troupe, await requestIn(stage.troupe), true, { by: BEN });
  await stage.quiet();
  expect(told).toMatchObject([{ author: ANA, authors: [ANA], turn: 'c:bo:2', forTools: { locale: 'de' } }]);
});

test('in a thread, after a handoff and after the end of a task a tool still knows who began it', async () => {
  const { told, look } = looker();
  const bo = inOrder(
    asks(['delegate', { to: 'cy', task: 'look around' }]),
    asks(['look', {}]),
    asks(['handoff', { to: 'di', goal: 'finish it' }]),
  );
  const stage = await openStage({
    tools: [look],
    agents: [
      { id: 'bo', model: bo, tools: ['delegate', 'look', 'handoff'] },
      { id: 'cy', model: inOrder(asks(['look', {}]), says('looked')), tools: ['look'] },
      { id: 'di', model: inOrder(asks(['look', {}]), says('finished')), tools: ['look'] },
    ],
  });
  await stage.troupe.send('c', { author: BEN, content: 'go', to: ['bo'], forTools: { locale: 'fr' } });
  await stage.quiet();
  expect(told.map(({ agent, author, forTools }) => [agent, author, forTools])).toEqual([
    ['cy', BEN, { locale: 'fr' }],
    ['bo', BEN, { locale: 'fr' }],
    ['di', BEN, { locale: 'fr' }],
  ]);
  expect(told[0]?.conversation).toMatch(/^c\.d-/);
});

test('a held message that a person passes on runs for its author, with what came with it', async () => {
  const { told, look } = looker();
  const model = inOrder(asks(['look', {}]), says('done'));
  const stage = await openStage({ tools: [look], agents: [{ id: 'bo', model, tools: ['look'] }] });
  const eve: Author = { kind: 'user', id: 'eve', name: 'Eve' };
  const message = { author: eve, to: ['bo'], content: 'look', untrusted: true as const };
  const { event } = await stage.troupe.send('c', { ...message, forTools: { locale: 'it' } });
  await stage.troupe.command({ command: 'dispatch', conversation: 'c', event: event.id }, ANA);
  await stage.quiet();
  expect(told).toMatchObject([{ author: eve, authors: [eve], forTools: { locale: 'it' } }]);
});

test('who began it is found without reading a long log again', async () => {
  const { told, look } = looker();
  const readFrom: number[] = [];
  const driver = tapDriver(await openDriver(), (op, phase, [query]) => {
    const { conversation, after } = Object(query) as { conversation?: string; after: number };
    if (op === 'readEvents' && phase === 'before' && conversation === 'c') readFrom.push(after);
  });
  const round = () => [asks(['delegate', { to: 'cy', task: 'look' }]), asks(['look', {}]), says('done')];
  const bo = inOrder(...round(), ...round());
  const stage = await openStage({
    driver,
    tools: [look],
    agents: [
      { id: 'bo', model: bo, tools: ['delegate', 'look'] },
      { id: 'cy', model: inOrder(says('seen'), says('seen again')) },
    ],
  });
  for (let time = 0; time < 100; time++) await stage.say('c', 'for people', []);
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  readFrom.length = 0;
  await stage.say('c', 'go again', ['bo']);
  await stage.quiet();
  expect(told.map(({ author }) => author)).toEqual([ANA, ANA]);
  expect(Math.min(...readFrom)).toBeGreaterThan(100);
});

const RULES = [
  { when: { contains: 'seen' }, reply: 'done' },
  { reply: '', calls: [{ name: 'look', args: {} }] },
];

function company() {
  const { told, look } = looker();
  return {
    told,
    troupe: {
      agents: [{ id: 'bo', provider: 'scripted' as const, script: { rules: RULES }, tools: ['look'] }],
      tools: [look],
    },
  };
}

test('a tool gets what the application gave the troupe and the message, the very values, and nothing of them is stored', async () => {
  const { told, troupe: definition } = company();
  const app: App = { rates: new Map([['EUR', 1]]) };
  await using troupe = await openTroupe(definition, { app });
  const forTools = { locale: 'canary-locale', close: () => undefined };
  await troupe.ask('c', { content: 'look', forTools });
  expect(told[0]?.app).toBe(app);
  expect(told[0]?.forTools).toBe(forTools);
  expectTypeOf<Told['app']>().toEqualTypeOf<App>();
  const stored: string[] = [];
  for await (const line of troupe.export('c')) stored.push(line);
  expect(stored.join('')).not.toContain('canary');
  await troupe.ask('c', 'look again');
  expect(told[1]?.forTools).toBeNull();
});

test('what is stored with a message reaches tools wherever they run, and must be JSON', async () => {
  const { told, troupe: definition } = company();
  await using troupe = await openTroupe(definition);
  const { event } = await troupe.send('c', {
    author: ANA,
    to: ['bo'],
    content: 'look',
    forTools: { locale: 'de' },
    storeForTools: true,
  });
  await troupe.idle();
  expect(event.context).toMatchObject({ forTools: { locale: 'de' } });
  expect(told[0]?.forTools).toEqual({ locale: 'de' });
  const since = new Date(0);
  await troupe.ask('d', { content: 'look', forTools: { since }, storeForTools: true });
  expect(told[1]?.forTools).toEqual({ since: since.toJSON() });
  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  await expect(
    troupe.send('c', { author: ANA, content: 'x', forTools: cyclic, storeForTools: true }),
  ).rejects.toMatchObject({
    code: 'event_invalid',
    message: expect.stringMatching(/^forTools: to be stored it must be JSON/),
  });
});

test('what came with a message goes with its conversation', async () => {
  const { told, troupe: definition } = company();
  await using troupe = await openTroupe(definition);
  const message = { id: 'm1', author: ANA, to: ['bo'], content: 'look' };
  await troupe.ask('c', { ...message, forTools: { locale: 'de' } });
  const { head } = await troupe.state('c');
  await troupe.command({ command: 'archive', conversation: 'c' }, ANA);
  await troupe.delete('c', { exported: head + 1 });
  await troupe.ask('c', message);
  expect(told.map(({ forTools }) => forTools)).toEqual([{ locale: 'de' }, null]);
});

test('a message for people only takes nothing for tools', async () => {
  const { troupe: definition } = company();
  await using troupe = await openTroupe(definition);
  const notice = { author: ANA, content: 'x', includeInContext: false, forTools: { locale: 'de' } };
  await expect(troupe.send('c', notice)).rejects.toThrow(/^forTools: a message with includeInContext: false/);
});

test('a tool in another process, or after a restart, gets null unless the value was stored', async () => {
  const { told, troupe: definition } = company();
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-for-tools-'));
  onTestFinished(() => rmSync(data, { recursive: true }));
  {
    await using sender = await openTroupe(definition, { data, work: false });
    const message = { author: ANA, to: ['bo'], content: 'look', forTools: { locale: 'de' } };
    await sender.send('kept', message);
    await sender.send('stored', { ...message, storeForTools: true });
  }
  await using worker = await openTroupe(definition, { data, app: 'of the worker' });
  await until('both have looked', () => told.length === 2);
  await worker.idle();
  expect(new Map(told.map(({ conversation, forTools }) => [String(conversation), forTools]))).toEqual(
    new Map([
      ['kept', null],
      ['stored', { locale: 'de' }],
    ]),
  );
  expect(told.map(({ app }) => app)).toEqual(['of the worker', 'of the worker']);
});

test('callers over HTTP cannot give tools anything', async () => {
  const { troupe: definition } = company();
  await using troupe = await openTroupe(definition, { work: false });
  const app = createApp(troupe);
  for (const more of [{ forTools: {} }, { storeForTools: true }, { context: { forTools: {} } }]) {
    const body = JSON.stringify({ author: ANA, to: ['bo'], content: 'x', ...more });
    const headers = { 'content-type': 'application/json' };
    const answer = await app.request('/api/conversations/c/events', { method: 'POST', headers, body });
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'event_invalid' } }]);
  }
});
