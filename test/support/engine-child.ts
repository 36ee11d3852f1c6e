import { appendFileSync } from 'node:fs';
import * as z from 'zod';
import type { Author, EventId } from '../../src/events/index.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import { dataPaths } from '../../src/store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { hashOf, randomOf } from './engine-random.ts';

/**
 * A troupe that its parent kills. Arguments: data directory, ledger file, seed, round, `work` or `finish`. Writes
 * JSON lines to stdout: `{pinned}` with the turns found pinned at the start, `{ready}`, and `{acked}` per post.
 */
const [dir = '', ledger = '', seed = '0', round = '0', mode = 'work'] = process.argv.slice(2);
const CONVERSATIONS = 24;
const AGENTS = ['bo', 'cy', 'di'];
const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const QUIET_MS = 150;

function report(line: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function pinnedTurns(): Promise<number> {
  const driver = await openSqliteDriver({ path: dataPaths(dir).database });
  const { rows: conversations } = await driver.conversations({ tenant: 'default', limit: CONVERSATIONS });
  let pinned = 0;
  for (const { id } of conversations) {
    const actors = await driver.listActors({ tenant: 'default', conversation: id });
    pinned += actors.filter(({ turn }) => turn !== null).length;
  }
  await driver.close();
  return pinned;
}

const note = defineTool({
  name: 'note',
  description: 'Writes into a book; twice would be wrong.',
  schema: z.object({}),
  async run(_, { effect }) {
    appendFileSync(ledger, `${effect}\n`);
    await new Promise((resolve) => setTimeout(resolve, 8));
    return `noted ${effect}`;
  },
});

const streamed = { chunk: 4, chunkDelayMs: 3 };
const script = {
  rules: [
    {
      when: { step: 1, contains: 'note' },
      reply: 'I write',
      calls: [
        { name: 'note', args: {} },
        { name: 'note', args: {} },
      ],
      ...streamed,
    },
    {
      when: { step: 2, contains: 'noted' },
      reply: 'and once more',
      calls: [{ name: 'note', args: {} }],
      ...streamed,
    },
    {
      when: { step: 1, contains: 'pass' },
      reply: '',
      calls: [{ name: 'handoff', args: { to: 'di', goal: 'end this' } }],
      ...streamed,
    },
    { reply: 'That is done, and here is a sentence about it.', ...streamed },
  ],
};

/** The message is a function of its id, so that a repeated post has the same payload. */
function messageOf(id: string) {
  const dice = hashOf(id);
  const to = AGENTS.filter((_, index) => ((dice >> index) & 1) === 1);
  const content = `${['note', 'pass', 'say'][dice % 3]} ${id}`;
  return { id: id as EventId, author: ANA, content, to: to.length > 0 ? to : ['bo'] };
}

if (Number(round) > 0) report({ pinned: await pinnedTurns() });
const troupe = await openTroupe(
  {
    agents: AGENTS.map((id) => ({ id, provider: 'scripted', script, tools: ['note', 'handoff'] })),
    tools: [note],
  },
  { data: dir, concurrency: 16, constants: { limits: { maxAttempts: 1_000 } } },
);
report({ ready: true });

async function post(conversation: number, number: number): Promise<void> {
  const id = `c${conversation}-m${number}`;
  await troupe.send(`c${conversation}`, messageOf(id));
  report({ acked: id });
}

if (mode === 'work') {
  const random = randomOf(Number(seed));
  // Posts new messages and repeats those of earlier rounds: a client cannot know which of them were stored.
  for (;;) {
    const number = Math.max(0, Number(round) - Math.floor(random() ** 2 * 3));
    await post(Math.floor(random() * CONVERSATIONS), number);
    await new Promise((resolve) => setTimeout(resolve, random() * 12));
  }
} else {
  for (let still = 0; still < 3;) {
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    const { waiting, active, delayed } = await troupe.queues();
    still = waiting + active + delayed === 0 ? still + 1 : 0;
  }
  await troupe.close();
}
