import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  startFakeOpenAi,
  type FakeReply,
  type FakeRequest,
} from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { ROOM, UMA } from '../support/company.ts';
import type { WireMessage } from '../support/compact.ts';
import { openTroupe } from '../support/mode.ts';

/** Short enough to be shown whole, long enough that a few fill the window. */
const report = (day: number) =>
  Array.from({ length: 60 }, (_, line) => `day ${day}, line ${line}: all quiet`).join('\n');
const look = defineTool({
  name: 'look',
  description: 'The report of a day.',
  schema: z.object({ day: z.number() }),
  run: ({ day }) => report(day),
});

/** A model that looks up the day in question, and reads an output of this or an earlier turn on request. */
function answer({ body }: FakeRequest): FakeReply {
  const { messages } = body as { messages: WireMessage[] };
  const last = messages.at(-1);
  const [, day] = /look at day (\d+)/.exec(last?.content ?? '') ?? [];
  const [, id] = /read (\S+)/.exec(last?.content ?? '') ?? [];
  if (last?.role === 'user' && day) return called('look', { day: Number(day) });
  if (last?.role === 'user' && id) return called('read_artifact', { id, limit: 500 });
  const isFirst = messages.at(-3)?.role === 'user';
  const [, own] = /then (\S+:result:\S+)/.exec(messages.at(-3)?.content ?? '') ?? [];
  if (isFirst && own) return called('read_artifact', { id: own, limit: 500 });
  return { text: 'I see.', usage: null };
}

function called(name: string, args: object): FakeReply {
  return { calls: [{ name, args: JSON.stringify(args) }], usage: null };
}

async function room(data?: string) {
  const vendor = await startFakeOpenAi(answer);
  const troupe = await openTroupe(
    {
      agents: ['p', 'q'].map((id) => ({
        id,
        provider: 'openai-compatible',
        model: id,
        baseUrl: vendor.url,
        contextWindow: 8_000,
        maxOutputTokens: 200,
        tools: ['look'],
      })),
      tools: [look],
      context: { summaries: 'extract' },
    },
    {
      constants: { policy: { prune: { protectTokens: 500, minGain: 500 } } },
      ...(data !== undefined && { data }),
    },
  );
  onTestFinished(async () => {
    await troupe.close();
    await vendor.close();
  });
  const messages = () =>
    (vendor.requests.at(-1)?.body as { messages: WireMessage[] } | undefined)?.messages ?? [];
  const ask = async (content: string, to = 'p') => {
    await troupe.send(ROOM, { author: UMA, to: [to], content });
    await troupe.idle();
  };
  return {
    troupe,
    ask,
    last: () => messages().at(-1)?.content ?? '',
    /** The placeholders of the last prompt. */
    placeholders: () =>
      messages().flatMap(({ role, content }) =>
        role === 'tool' ? [...(/@artifact\/([^\]\s]+)/.exec(content ?? '')?.slice(1, 2) ?? [])] : [],
      ),
    /** The outcome of a read: the result at the end of the last prompt. */
    reads: async (id: string, agent = 'p') => {
      await ask(`read ${id}`, agent);
      return messages().at(-1)?.content ?? '';
    },
    untilPruned: async () => {
      for (let day = 1; day < 12; day++) {
        await ask(`look at day ${day}`);
        const { events } = await troupe.events(ROOM, { limit: 1_000 });
        if (events.some(({ kind }) => kind === 'prune')) return;
      }
      throw new Error('nothing was removed');
    },
  };
}

test('the placeholder of a pruned output names the tool that reads all of it', async () => {
  const { untilPruned, placeholders, reads } = await room();
  await untilPruned();
  const ids = placeholders();
  expect(ids.length).toBeGreaterThan(1);
  for (const [index, id] of ids.entries()) {
    const text = await reads(index === 0 ? `@artifact/${id}` : id);
    expect(text).toBe(`${report(index + 1)}\n[lines 0 to 59 of 60]`);
  }
});

test('the id is still valid after a restart', async () => {
  const data = await mkdtemp(path.join(tmpdir(), 'outputs-'));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const first = await room(data);
  await first.untilPruned();
  const [id = ''] = first.placeholders();
  await first.troupe.close();
  const second = await room(data);
  expect(await second.reads(id)).toContain('day 1, line 59: all quiet');
});

test("another agent's output, another kind of event and an unknown id are no artifacts", async () => {
  const { ask, reads, troupe } = await room();
  await ask('look at day 1');
  const { events } = await troupe.events(ROOM);
  const idOf = (kind: string) => events.find((event) => event.kind === kind)?.id ?? '';
  expect(await reads(idOf('tool.result'))).toContain('day 1, line 0');
  expect(await reads(idOf('tool.result'), 'q')).toMatch(/there is no artifact/);
  for (const id of [idOf('step'), idOf('message'), idOf('turn.done'), 'room:p:1:result:0.9']) {
    expect(id).not.toBe('');
    expect(await reads(id)).toMatch(/there is no artifact/);
  }
});

test('an output of the running turn can be read, too', async () => {
  const { ask, last } = await room();
  await ask('look at day 3, then room:p:1:result:0.0');
  expect(last()).toBe(`${report(3)}\n[lines 0 to 59 of 60]`);
});
