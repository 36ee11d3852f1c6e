import { expect } from 'vitest';
import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { Event, TodoItem } from '../../src/events/index.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { company, type Company, type CompanyOptions, ROOM } from './company.ts';
import { reminders } from './compact.ts';

type Item = `${TodoItem['status']} ${string}`;

/** A call of `todo`, with the text beside it. */
export function lists(items: readonly Item[], more: object = {}, text = ''): FakeReply {
  const body = items.map((item) => ({
    status: item.split(' ')[0],
    text: item.split(' ').slice(1).join(' '),
  }));
  return { text, calls: [{ name: 'todo', args: JSON.stringify({ items: body, ...more }) }] };
}

export function calls(name: string, args: object = {}): FakeReply {
  return { calls: [{ name, args: JSON.stringify(args) }] };
}

export const work = defineTool({
  name: 'work',
  description: 'does something',
  schema: z.object({}),
  run: () => 'worked',
});
const fails = defineTool({
  name: 'fails',
  description: 'never works',
  schema: z.object({}),
  run(): string {
    throw new Error('broken');
  },
});

/** Agent `p` with these tools and answers, and `d`, which only talks. */
export function room(
  tools: string[],
  answers: readonly (string | FakeReply)[],
  { agents = {}, ...more }: CompanyOptions = {},
  own: Partial<AgentInput> = {},
): Promise<Company> {
  return company(['p', 'd'], {
    ...more,
    tools: [work, fails],
    answers: { p: answers, ...more.answers },
    agents: { p: { tools, ...own } as Partial<AgentInput>, ...agents },
  });
}

export async function only<K extends Event['kind']>(
  { troupe }: Company,
  kind: K,
): Promise<Extract<Event, { kind: K }>[]> {
  const { events } = await troupe.events(ROOM);
  return events.filter((event): event is Extract<Event, { kind: K }> => event.kind === kind);
}

/** The last message of request `n`, if it is a note of supervision. */
export function noteIn(company: Company, n?: number, agent = 'p'): string | null {
  const last = company.raw(agent, n).at(-1);
  if (last?.role !== 'user' || !last.content?.startsWith('[reminder #')) return null;
  return reminders(last)[0] ?? null;
}

export async function verified({ troupe }: Company, turn: string, steps: number): Promise<void> {
  for (let step = 1; step <= steps; step++)
    expect(await troupe.promptOf(turn, step)).toMatchObject({ step, verified: true });
}
