import { expect, test } from 'vitest';
import { ANA, scripted, startApi } from './harness.ts';

const give = (to: string, task: string) => ({ reply: '', calls: [{ name: 'delegate', args: { to, task } }] });
const COMPANY = {
  agents: [
    {
      ...scripted('lead', [{ when: { contains: 'dry' }, reply: 'Then we build.' }, give('surveyor', 'look')]),
      tools: ['delegate'],
    },
    {
      ...scripted('surveyor', [{ when: { contains: 'no water' }, reply: 'dry' }, give('digger', 'dig')]),
      tools: ['delegate'],
    },
    scripted('digger', [{ reply: 'no water' }]),
  ],
};

/** A conversation `c` with two threads, one of which was opened in the other. */
async function startWork() {
  const api = await startApi({ company: COMPANY });
  await api.troupe.send('c', { author: ANA, to: ['lead'], content: 'May we build?' });
  await api.troupe.idle();
  return api;
}

async function textOf(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

async function* chunksOf(text: string) {
  yield text;
}

const headersOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{"troupe":'))
    .map((line) => (JSON.parse(line) as { conversation: string }).conversation);

test('an export has the threads of its tasks, unless they are left out', async () => {
  await using api = await startWork();
  const whole = await textOf(api.troupe.export('c'));
  const [root, ...threads] = headersOf(whole);
  expect(root).toBe('c');
  expect(threads).toHaveLength(2);
  for (const thread of threads) expect(thread).toMatch(/^c\.d-[0-9a-f]{12}$/);
  expect(headersOf(await textOf(api.troupe.export('c', { threads: false })))).toEqual(['c']);
  const read = async (query: string) => (await api.app.request(`/api/conversations/c/export${query}`)).text();
  expect(await read('')).toBe(whole);
  expect(headersOf(await read('?threads=false'))).toEqual(['c']);
  expect((await api.get('/api/conversations/c/export?threads=perhaps')).status).toBe(400);
});

test('an export with threads is imported whole, under its own names and under another', async () => {
  await using api = await startWork();
  const whole = await textOf(api.troupe.export('c'));
  await using other = await startApi({ company: COMPANY });
  const same = await other.troupe.import(chunksOf(whole), {});
  expect(same).toMatchObject({ conversations: headersOf(whole), skipped: [], repaired: [] });
  expect(headersOf(await textOf(other.troupe.export('c')))).toEqual(headersOf(whole));

  const copy = await api.troupe.import(chunksOf(whole), { conversation: 'copy' });
  expect(copy.conversations).toEqual(headersOf(whole).map((name) => name.replace(/^c/, 'copy')));
  // The copy leads to its own threads, so that it is exported and deleted without those of the source.
  const copied = await textOf(api.troupe.export('copy'));
  expect(headersOf(copied)).toEqual(copy.conversations);
  expect(copied.split('\n')).toHaveLength(whole.split('\n').length);
  expect(await api.troupe.delete('copy', { exported: 'none' })).toMatchObject({ conversations: 3 });
  expect(await textOf(api.troupe.export('c'))).toBe(whole);
  for (const each of headersOf(whole))
    expect(await api.troupe.verify(each)).toMatchObject({ problemCount: 0 });
});

test('lists tell threads from conversations, and an id of the same form from a thread', async () => {
  await using api = await startWork();
  await api.troupe.send('c.d-0123456789ab', { author: ANA, content: 'chosen by a person' });
  await api.troupe.idle();
  const all = await api.troupe.conversations();
  const opened = all.filter(({ kind }) => kind === 'thread').map(({ id }) => id);
  const [first, second] = headersOf(await textOf(api.troupe.export('c'))).slice(1);
  expect(new Set(opened)).toEqual(new Set([first, second]));
  const kinds = new Map(all.map(({ id, kind, parent }) => [id as string, { kind, parent }]));
  expect(kinds.get('c')).toEqual({ kind: 'conversation', parent: null });
  expect(kinds.get('c.d-0123456789ab')).toEqual({ kind: 'conversation', parent: null });
  expect(kinds.get(first ?? '')).toEqual({ kind: 'thread', parent: 'c' });
  // A thread of a thread.
  expect(kinds.get(second ?? '')).toEqual({ kind: 'thread', parent: first });

  const listed = async (kind: 'conversation' | 'thread') =>
    (await api.troupe.listConversations({ kind })).conversations.map(({ id }) => id).toSorted();
  expect(await listed('conversation')).toEqual(['c', 'c.d-0123456789ab']);
  expect(await listed('thread')).toEqual(opened.toSorted());
  for (const path of ['conversations', 'inbox']) {
    const answer = async (query: string) => {
      const { body } = await api.get(`/api/${path}${query}`);
      if (body['error']) throw new Error(JSON.stringify(body));
      const lines = (body['conversations'] ?? body['lines']) as {
        id: string;
        kind: string;
        parent: string;
      }[];
      return new Map(lines.map(({ id, kind, parent }) => [id, { kind, parent }]));
    };
    expect(await answer('')).toEqual(kinds);
    expect([...(await answer('?kind=conversation')).keys()].toSorted()).toEqual(['c', 'c.d-0123456789ab']);
    expect([...(await answer('?kind=thread')).keys()].toSorted()).toEqual(opened.toSorted());
    expect((await api.get(`/api/${path}?kind=room`)).status).toBe(400);
  }
});

test('pages of one kind have each conversation once, among many threads', async () => {
  await using api = await startWork();
  for (let index = 0; index < 30; index += 1)
    await api.troupe.send(`room-${index}`, { author: ANA, content: 'hello' });
  const seen: string[] = [];
  let before: string | null | undefined;
  while (before !== null) {
    const page = await api.troupe.listConversations({ kind: 'thread', limit: 2, before });
    expect(page.conversations.length).toBeLessThanOrEqual(2);
    seen.push(...page.conversations.map(({ id }) => id));
    before = page.next;
  }
  expect(seen.toSorted()).toEqual(
    headersOf(await textOf(api.troupe.export('c')))
      .slice(1)
      .toSorted(),
  );
});
