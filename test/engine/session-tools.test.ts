import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  createFakeSessions,
  newSessionMemory,
  type SeenCall,
} from '../../packages/testing/src/fake-sessions.ts';
import { defineTool, type Tool } from '../../src/tools/tool.ts';
import { modelOf, says } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';

const add = defineTool({
  name: 'add',
  description: 'adds',
  schema: z.object({ a: z.number() }),
  run: ({ a }) => `sum ${a}`,
});

async function ask(stage: Stage, content: string): Promise<void> {
  await stage.say('c', content, ['bo']);
  await stage.quiet();
}

function sent(call: SeenCall | undefined): string {
  return (call?.sent ?? []).map(({ content }) => content).join('\n');
}

function sessions() {
  const memory = newSessionMemory();
  const answer = modelOf(async function* () {
    yield* says('ok');
  });
  const model = createFakeSessions({
    answer: (request, signal) => answer.stream(request, { signal }),
    memory,
  });
  return { model, seen: memory.seen };
}

test('a session is told in its next delta that calls of a tool may fail, and once that they may not any more', async () => {
  let trouble: string | null = null;
  const tool: Tool = { ...add, trouble: () => trouble };
  const { model, seen } = sessions();
  const stage = await openStage({ agents: [{ id: 'bo', model, tools: ['add'] }], tools: [tool] });
  const news = async (now: string | null) => {
    trouble = now;
    await ask(stage, 'go');
    return /^unavailable: .*$/m.exec(sent(seen.at(-1)))?.[0] ?? null;
  };
  expect(await news(null)).toBeNull();
  expect(await news('the tool server sums was lost')).toBe('unavailable: the tool server sums was lost');
  expect(await news('the tool server sums was lost')).toBeNull();
  expect(await news(null)).toBe('unavailable: nothing any more');
  expect(await news(null)).toBeNull();
  expect(seen.map(({ change }) => change)).toEqual(['started', ...Array(4).fill('resumed')]);
});

test('a session that remembers other tools is replaced by one that gets all of them', async () => {
  const { model, seen } = sessions();
  const first = await openStage({ agents: [{ id: 'bo', model }], tools: [add] });
  await ask(first, 'one');
  const next = await openStage({
    agents: [{ id: 'bo', model, tools: ['add'] }],
    tools: [add],
    driver: first.driver,
  });
  await ask(next, 'two');
  const notes = (await next.events('c')).flatMap((event) =>
    event.kind === 'baseline' || (event.kind === 'session.changed' && event.body.change === 'rebuilt')
      ? [event.body.reason]
      : [],
  );
  expect(notes).toEqual(['first turn', 'tools changed', 'baseline']);
  expect(seen.map(({ change }) => change)).toEqual(['started', 'started']);
  expect(sent(seen.at(-1))).toMatch(/one[^]*two/);
});
