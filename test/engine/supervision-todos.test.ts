import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { company, type Company, type CompanyOptions, ROOM, UMA } from '../support/company.ts';
import { reminders } from '../support/compact.ts';

const made: string[] = [];
function scratch(): string {
  made.push(mkdtempSync(path.join(tmpdir(), 'troupe-todos-')));
  return made.at(-1) as string;
}
afterAll(() => made.forEach((each) => rmSync(each, { recursive: true, force: true })));

function lists(items: readonly [string, string][], later = true): FakeReply {
  const body = { items: items.map(([status, text]) => ({ status, text })), later };
  return { calls: [{ name: 'todo', args: JSON.stringify(body) }] };
}

function keeper(
  answers: readonly (string | FakeReply)[],
  more: CompanyOptions = {},
  own: Partial<AgentInput> = { tools: ['todo'] },
): Promise<Company> {
  return company(['p'], { answers: { p: answers }, agents: { p: own }, ...more });
}

/** The reminders of a request, the newest last, each item as a line. */
function told(room: Company, n?: number): string[] {
  return room.raw('p', n).flatMap((message) => (message.role === 'user' ? reminders(message) : []));
}

test('K1 the list is in the one live block of the turn, and nowhere else', async () => {
  await using room = await keeper([lists([['pending', 'sail']]), 'set up', 'well']);
  await room.say(UMA, 'p', 'set it up');
  await room.say(UMA, 'p', 'and?');
  expect(told(room).filter((block) => block.includes('todos:'))).toHaveLength(1);
  expect(told(room).at(-1)).toContain('todos: - [pending] sail');
  expect((await room.troupe.promptOf(`${ROOM}:p:2`)).verified).toBe(true);
});

test('K2 an unchanged list is not repeated; a changed one is, and the end of one is stated once', async () => {
  await using room = await keeper([
    lists([['pending', 'sail']]),
    'set up',
    'one',
    'two',
    lists([['active', 'sail']]),
    'three',
    'four',
    lists([['done', 'sail']]),
    'five',
    'six',
    'seven',
  ]);
  for (const content of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await room.say(UMA, 'p', content);
  const lines = told(room).flatMap((block) =>
    block.includes('todos:') ? [block.replace(/^.*todos: /, '')] : [],
  );
  expect(lines).toEqual(['- [pending] sail', '- [active] sail', 'nothing any more']);
});

test('K3 the list sent in turn 2 has the same bytes in later turns', async () => {
  await using room = await keeper([
    lists([['pending', 'sail']]),
    'set up',
    lists([['active', 'sail']]),
    'b',
    'c',
  ]);
  for (const content of ['a', 'b', 'c']) await room.say(UMA, 'p', content);
  for (let n = 1; n < 5; n++) {
    const before = room.raw('p', n);
    expect(room.raw('p', n + 1).slice(0, before.length)).toEqual(before);
  }
});

test('F3 the list survives a restart: the agent is shown it, and held to it', async () => {
  const data = scratch();
  await using first = await keeper(
    [lists([['pending', 'sail']], false), 'off'],
    { data },
    {
      tools: ['todo'],
      supervision: false,
    },
  );
  await first.say(UMA, 'p', 'go');
  expect(first.requests('p')).toHaveLength(2);
  await first.troupe.close();

  await using second = await keeper(['no', lists([['done', 'sail']]), 'yes'], { data });
  await second.say(UMA, 'p', 'and?');
  expect(told(second, 1).at(-1)).toContain('todos: - [pending] sail');
  expect(told(second, 2).at(-1)).toContain('Your turn cannot end yet');
  expect(second.requests('p')).toHaveLength(3);
});

test('an agent without the tool is no longer held to the list that it made with it', async () => {
  const data = scratch();
  const own = { tools: ['todo'], supervision: false };
  await using first = await keeper([lists([['pending', 'sail']], false), 'off'], { data }, own);
  await first.say(UMA, 'p', 'go');
  await first.troupe.close();

  await using second = await keeper(['no'], { data }, {});
  await second.say(UMA, 'p', 'and?');
  expect(second.requests('p')).toHaveLength(1);
});
