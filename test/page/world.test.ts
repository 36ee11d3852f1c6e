import { expect, test } from 'vitest';
import { openWorld, type WorldStage } from './world-stage.ts';
import { SMALL_WORLD } from './world.ts';

interface Line {
  id: string;
  state: string;
  head: number;
  about: { text: string } | null;
  failure: { code: string } | null;
}

async function readWhole(
  world: WorldStage,
  query = '',
): Promise<{ counts: Record<string, number>; lines: Line[] }> {
  const read = async (after: string) => {
    const answer = await fetch(`${world.url}api/inbox?limit=100&${query}${after}`);
    return (await answer.json()) as {
      counts: Record<string, number>;
      unread: number;
      lines: Line[];
      next: string | null;
    };
  };
  const lines: Line[] = [];
  await expect.poll(async () => (await read('')).unread, { timeout: 60_000 }).toBe(0);
  for (let page = await read(''); ; page = await read(`&after=${encodeURIComponent(page.next ?? '')}`)) {
    lines.push(...page.lines);
    if (page.next === null) return { counts: page.counts, lines };
  }
}

const threads = (lines: Line[]) => lines.filter(({ id }) => !id.includes('.d-'));

test('the world has its failures, waits, chains and keys', async () => {
  await using world = await openWorld();
  const { counts, lines } = await readWhole(world);
  expect(counts).toMatchObject({ failed: SMALL_WORLD.failures, asks: SMALL_WORLD.waits });
  expect(lines.find(({ id }) => id === 'archive')?.head).toBeGreaterThanOrEqual(SMALL_WORLD.longest);
  expect(new Set(lines.map(({ failure }) => failure?.code).filter(Boolean)).size).toBe(3);
  const stamp = await world.troupe.tasks('stamp', { open: true });
  expect(stamp.tasks).toMatchObject([{ kind: 'delegation', assignee: 'billing' }]);
  await expect.poll(async () => (await world.troupe.queues()).turns.waitingTotal).toBeGreaterThan(1);
  expect((await world.troupe.forTenant('north').conversations()).length).toBeGreaterThan(0);
  expect(Object.keys(world.keys)).toHaveLength(5);
});

test('the same seed plays the same conversations, another seed others', async () => {
  const size = { conversations: 12, failures: 2, waits: 2, longest: 10, elsewhere: 0 };
  const told = async (seed: number) => {
    await using world = await openWorld({ seed, size });
    const { lines } = await readWhole(world);
    return threads(lines)
      .map(({ id, state, about, failure }) => [id, state, about?.text, failure?.code])
      .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  };
  const first = await told(1);
  expect(await told(1)).toEqual(first);
  expect(await told(2)).not.toEqual(first);
});
