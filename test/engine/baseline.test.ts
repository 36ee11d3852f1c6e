import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { AgentId, Event, PromptMessage } from '../../src/events/index.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { mortal } from '../support/engine-driver.ts';
import { asks, bytes, byStep, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import { logOf, openStage, type Stage, type StageAgent, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const adds = defineTool({ name: 'adds', description: 'a', schema: z.object({}), run: () => '2' });
const counts = defineTool({ name: 'counts', description: 'c', schema: z.object({}), run: () => '3' });

/** Starts a process with these agents, takes one turn of @bo, and stops. Returns the requests of its model. */
async function oneTurn(driver: StoreDriver, bo: Partial<StageAgent> = {}, others: string[] = []) {
  const model = inOrder(says('well'));
  const stage = await openStage({
    driver,
    tools: [adds, counts],
    agents: [{ id: 'bo', model, ...bo }, ...others.map((id) => ({ id, model: inOrder(says('-')) }))],
  });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  const events = await stage.events('c');
  expect(await stage.check('c')).toEqual([]);
  return { stage, request: model.requests[0], events, text: shown(model.requests[0]) };
}

function frozen(events: readonly Event[]): string[] {
  return events.flatMap((event) => (event.kind === 'baseline' ? [event.body.reason] : []));
}

function texts(messages: readonly PromptMessage[] = []) {
  return messages.map(({ role, content }) => [role, content]);
}

test('working agents learn of a new colleague, and what they were sent stays unchanged', async () => {
  const driver = await openDriver();
  const first = await oneTurn(driver, {}, ['di']);
  const second = await oneTurn(driver, {}, ['di', 'cy']);
  const third = await oneTurn(driver, {}, ['di', 'cy']);
  expect(frozen(third.events)).toEqual(['first turn']);
  const sent = first.request?.messages ?? [];
  expect(texts(second.request?.messages).slice(0, sent.length)).toEqual(texts(sent));
  expect(second.request?.messages.at(-1)?.content).toContain('@cy: cy, peer');
  expect(times(third.text, '@cy: cy, peer')).toBe(1);
  expect(await third.stage.troupe.promptOf('c:bo:2')).toMatchObject({ verified: true });
  const preview = await third.stage.troupe.prompt('c', 'bo');
  expect(texts(preview.messages).slice(0, sent.length)).toEqual(texts(sent));
});

test('the rules of an agent without colleagues change with the first one, in a new epoch', async () => {
  const driver = await openDriver();
  const first = await oneTurn(driver);
  const second = await oneTurn(driver, {}, ['cy']);
  expect(frozen(second.events)).toEqual(['first turn', 'rules, persona, environment changed']);
  expect(first.text).not.toContain('Reach other agents');
  expect(second.text).toContain('Reach other agents');
});

test('a colleague who leaves again is reported once, even if the baseline never listed it', async () => {
  const driver = await openDriver();
  await oneTurn(driver, {}, ['di']);
  await oneTurn(driver, {}, ['di', 'cy']);
  const third = await oneTurn(driver, {}, ['di']);
  const fourth = await oneTurn(driver, {}, ['di']);
  expect(third.request?.messages.at(-1)?.content).toMatch(/list of agents.*\n.*\n- @bo: bo, peer\n/);
  expect(times(fourth.text, 'list of agents')).toBe(2);
  expect(frozen(fourth.events)).toEqual(['first turn']);
});

test('changed tools start an epoch that lists the colleagues and all live items again', async () => {
  const driver = await openDriver();
  await oneTurn(driver, { tools: ['adds'] }, ['di']);
  await oneTurn(driver, { tools: ['adds'] }, ['di', 'cy']);
  const third = await oneTurn(driver, { tools: ['counts'] }, ['di', 'cy']);
  expect(frozen(third.events)).toEqual(['first turn', 'tools, environment changed']);
  expect(third.request?.messages[0]?.content).toContain('@cy: cy, peer');
  const last = third.request?.messages.at(-1)?.content ?? '';
  expect(last).toContain('task: answer the last message');
  expect(last).not.toContain('list of agents');
});

test("an old prompt is shown with the tools that were sent, not with today's", async () => {
  const driver = await openDriver();
  await oneTurn(driver, { tools: ['adds'] });
  const { stage } = await oneTurn(driver, { tools: ['counts'] });
  const names = async (turn: string) => (await stage.troupe.promptOf(turn)).tools.map(({ name }) => name);
  expect(await names('c:bo:1')).toEqual(['adds', 'read_artifact']);
  expect(await names('c:bo:2')).toEqual(['counts', 'read_artifact']);
});

test('a turn resumed under other tools and colleagues sends what its first attempt sent', async () => {
  const inner = await openDriver();
  const first = mortal(inner);
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await new Promise(() => undefined);
    yield* asks(['adds', {}]);
  });
  const killed = await openStage({
    driver: first.driver,
    tools: [adds, counts],
    agents: [{ id: 'bo', model: hung, tools: ['adds'] }],
  });
  await killed.say('c', 'go', ['bo']);
  await until('the second step', () => hung.requests.length === 2);
  first.kill();
  const model = byStep(says('never asked'), says('done'));
  const stage = await openStage({
    driver: inner,
    tools: [adds, counts],
    agents: [
      { id: 'bo', model, tools: ['counts'] },
      { id: 'cy', model: inOrder(says('-')) },
    ],
  });
  await stage.quiet();
  expect(bytes(model.requests[0])).toBe(bytes(hung.requests[1]));
  expect(await stage.check('c')).toEqual([]);
});

test('a turn resumed by a process with other instruction files sends the frozen ones; the next turn has the new', async () => {
  const [here, there] = ['Ship.', 'Wait.'].map((text) => {
    const dir = mkdtempSync(join(tmpdir(), 'workspace-'));
    writeFileSync(join(dir, 'AGENTS.md'), text);
    return dir;
  });
  const inner = await openDriver();
  const first = mortal(inner);
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await new Promise(() => undefined);
    yield* asks(['adds', {}]);
  });
  const bo = { id: 'bo', tools: ['adds'] };
  const killed = await openStage({
    driver: first.driver,
    tools: [adds],
    agents: [{ ...bo, model: hung, workspace: here as string }],
  });
  await killed.say('c', 'go', ['bo']);
  await until('the second step', () => hung.requests.length === 2);
  first.kill();
  const model = inOrder(says('done'), says('next'));
  const stage = await openStage({
    driver: inner,
    tools: [adds],
    agents: [{ ...bo, model, workspace: there as string }],
  });
  await stage.quiet();
  expect(bytes(model.requests[0])).toBe(bytes(hung.requests[1]));
  expect(model.requests[0]?.messages[0]?.content).toContain('Ship.');
  await stage.say('c', 'on', ['bo']);
  await stage.quiet();
  expect(model.requests[1]?.messages[0]?.content).toContain('Wait.');
  expect(frozen(await stage.events('c'))).toEqual(['first turn', 'rules (AGENTS.md) changed']);
  expect(await stage.check('c')).toEqual([]);
  for (const dir of [here, there]) rmSync(dir as string, { recursive: true });
});

test('an imported baseline without its texts is frozen again where it cannot be kept', async () => {
  const { stage: source } = await oneTurn(await openDriver(), {}, ['cy', 'di']);
  const stage = await imported(source);
  await stage.say('c', 'and now?', ['bo']);
  await stage.quiet();
  const events = await stage.events('c');
  expect(frozen(events)).toEqual(['first turn', 'its texts are not in this store']);
  expect(events.at(-1)?.kind).toBe('turn.done');
});

async function imported(source: Stage): Promise<Stage> {
  let lines = '';
  for await (const line of source.troupe.export('c')) lines += `${line.trim()}\n`;
  const stage = await openStage({
    agents: [
      { id: 'bo', model: inOrder(says('now this')) },
      { id: 'cy', model: inOrder(says('-')) },
    ],
  });
  async function* chunks() {
    yield lines;
  }
  await stage.troupe.import(chunks(), { conversation: 'c' });
  return stage;
}

test('an agent whose frozen text is lost fails instead of sending a prompt without it', async () => {
  const inner = await openDriver();
  const first = mortal(inner);
  const hung = modelOf(() => (async function* () {})());
  hung.stream = () =>
    (async function* () {
      hung.requests.push(null as never);
      await new Promise(() => undefined);
      yield { type: 'start' } as const;
    })();
  const killed = await openStage({
    driver: first.driver,
    tools: [adds],
    agents: [{ id: 'bo', model: hung, tools: ['adds'] }],
  });
  await killed.say('c', 'go', ['bo']);
  await until('the model is asked', () => hung.requests.length === 1);
  first.kill();
  const readEntry: StoreDriver['readEntry'] = async (key) =>
    key.namespace === 'body' ? null : inner.readEntry(key);
  const model = inOrder(says('blind'));
  const stage = await openStage({ driver: { ...inner, readEntry }, agents: [{ id: 'bo', model }] });
  await stage.quiet();
  expect(model.requests).toEqual([]);
  const address = { ...logOf('c'), agent: 'bo' as AgentId };
  expect(await stage.store.readActor(address)).toMatchObject({ parked: 'failed' });
  expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'error', body: { code: 'store_corrupt' } });
});
