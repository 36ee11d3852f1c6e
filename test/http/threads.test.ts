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
