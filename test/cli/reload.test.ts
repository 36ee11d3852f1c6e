import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { serverOf } from '../../src/cli/client/connect.ts';
import { createHttpClient } from '../../src/cli/client/http-client.ts';
import { type Running, workplace } from './harness.ts';

const source = (file: string) => new URL(`../../src/${file}`, import.meta.url).href;

/**
 * An agents file that imports its instructions from `words.ts`. It is plain data: outside `node_modules` a reload loads
 * whatever the file imports again, which of the sources of Troupe is a hundred times as much.
 */
function agentsFile(reply: string, more = ''): string {
  return `import { WORDS } from './words.ts';

${more}
const model = { provider: 'scripted' as const, script: { rules: [{ reply: '${reply} {{n}}' }] } };
export const troupe = {
  agents: [{ id: 'planner', instructions: WORDS, ...model }],
  defaults: { respondWhenUnaddressed: 'planner' },
};
`;
}

function withDefineTroupe(text: string): string {
  return `import { defineTroupe } from '${source('index.ts')}';\n${text.replace(/troupe = (.*);\n$/s, 'troupe = defineTroupe($1);\n')}`;
}

/** The line of a reload, whatever came before it. */
async function lineWith(running: Running, field: string, count = 1): Promise<Record<string, unknown>> {
  for (;;) {
    const found = (running.lines as Record<string, unknown>[]).filter((line) => field in line);
    const last = found[count - 1];
    if (last) return last;
    await running.nextLine();
  }
}

function catching<T>(read: () => T): T | Error {
  try {
    return read();
  } catch (error) {
    return error as Error;
  }
}

test('dev reloads when the agents file or a file it imports changes, and keeps conversations', async () => {
  using place = workplace({ agents: null });
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  const file = place.write('agents.ts', withDefineTroupe(agentsFile('first')));
  await using dev = await place.dev([file]);
  expect((await place.call(['send', 'c', 'one', '--wait'])).out).toContain('first 1');
  place.write('words.ts', `export const WORDS = 'Plan well.';`);
  expect(await lineWith(dev, 'reloaded')).toMatchObject({ added: [], removed: [], changed: ['planner'] });
  place.write('agents.ts', withDefineTroupe(agentsFile('second')));
  await lineWith(dev, 'reloaded', 2);
  expect((await place.call(['send', 'c', 'two', '--wait'])).out).toContain('second 2');
  const prompt = await place.call(['context', 'c', 'planner', '--json']);
  expect(prompt.out).toContain('Plan well.');
});

test('dev names file and line of an error, goes on with the agents from before, and takes the mended file', async () => {
  using place = workplace({ agents: null });
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  const file = place.write('agents.ts', agentsFile('first'));
  await using dev = await place.dev([file]);
  place.write('agents.ts', agentsFile('second', 'const broken: = 1;'));
  const message = async (count: number) => {
    const { error } = await lineWith(dev, 'reloadFailed', count);
    return (error as { message: string }).message;
  };
  expect(await message(1)).toContain('agents.ts:3');
  place.write('words.ts', `\nthrow new Error('no words');\nexport const WORDS = 'Plan.';`);
  place.write('agents.ts', agentsFile('third'));
  await expect.poll(() => JSON.stringify(dev.lines)).toMatch(/no words/);
  expect(JSON.stringify(dev.lines)).toMatch(/words\.ts:2/);
  expect((await place.call(['send', 'c', 'one', '--wait'])).out).toContain('first 1');
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  await lineWith(dev, 'reloaded');
  expect(await place.call(['send', 'c', 'two', '--wait'])).toMatchObject({
    err: '',
    out: expect.stringContaining('third 2'),
  });
});

test('dev reloads agents whose schemas have cycles, and names the one that changed', async () => {
  using place = workplace({ agents: null });
  const zod = new URL('../../node_modules/zod/index.js', import.meta.url).href;
  const agents = (words: string) => `import { z } from '${zod}';
const Node = z.object({ name: z.string(), get children() { return z.array(Node); } });
const model = { provider: 'scripted', script: { rules: [{ reply: 'hi' }] } };
export const troupe = {
  agents: [{ id: 'tree', reply: Node, ...model }, { id: 'writer', instructions: () => '${words}', ...model }],
};`;
  const file = place.write('agents.ts', agents('Plan.'));
  await using dev = await place.dev([file]);
  place.write('agents.ts', agents('Plan well.'));
  expect(await lineWith(dev, 'reloaded')).toMatchObject({ added: [], removed: [], changed: ['writer'] });
  expect((await place.call(['send', 'c', 'one', '--to', 'writer', '--wait'])).out).toContain('hi');
});

test('send --wait goes on when dev reloads before the answer', async () => {
  using place = workplace({ agents: null });
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  const file = place.write(
    'agents.ts',
    agentsFile('slow').replace(" {{n}}'", " {{n}}', chunk: 1, chunkDelayMs: 200"),
  );
  await using dev = await place.dev([file]);
  const sent = place.call(['send', 'c', 'one', '--wait', '--url', dev.url]);
  await expect.poll(async () => (await fetch(`${dev.url}/api/conversations/c/events`)).ok).toBe(true);
  place.write('words.ts', `export const WORDS = 'Plan well.';`);
  expect(await sent).toMatchObject({ code: 0, err: '', out: expect.stringContaining('slow 1') });
});

test('dev keeps its data directory and answers every message while it reloads', async () => {
  using place = workplace({ agents: null });
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  const file = place.write('agents.ts', agentsFile('first'));
  await using dev = await place.dev([file]);
  const client = createHttpClient(dev.url, undefined);
  const author = { kind: 'user', id: 'ada', name: 'Ada' } as const;
  const end = new AbortController();
  const refused: unknown[] = [];
  async function sendAlways(conversation: string): Promise<void> {
    while (!end.signal.aborted)
      await client
        .send(conversation, { author, content: 'hi' })
        .catch((error: unknown) => refused.push(error));
  }
  const senders = ['a', 'b', 'c', 'd'].map(sendAlways);
  const found = new Set<unknown>();
  for (let reloads = 1; reloads <= 3; reloads++) {
    place.write('words.ts', `export const WORDS = 'Plan ${reloads}.';`);
    const isReloaded = lineWith(dev, 'reloaded', reloads).then(() => true);
    do found.add(catching(() => serverOf(dev.data)));
    while (!(await Promise.race([isReloaded, setImmediate(false)])));
  }
  end.abort();
  await Promise.all(senders);
  expect({ found: [...found], refused }).toEqual({ found: [dev.url], refused: [] });
});

test('dev reads .env: what is set already wins, and no value is printed', async () => {
  using place = workplace({ agents: null });
  place.write('.env', 'TROUPE_TEST_A=canary-of-file\nTROUPE_TEST_B=canary-of-file\n');
  const words = `export const WORDS = \`\${process.env.TROUPE_TEST_A} \${process.env.TROUPE_TEST_B}\`;`;
  place.write('words.ts', words);
  const file = place.write('agents.ts', agentsFile('first'));
  await using dev = await place.start(['dev', file, '--port', '0'], { TROUPE_TEST_B: 'of the shell' });
  const { url } = dev.ready as { url: string };
  await place.call(['send', 'c', 'one', '--wait', '--url', url]);
  const { out } = await place.call(['context', 'c', 'planner', '--json', '--url', url]);
  expect(out).toContain('canary-of-file of the shell');
  expect(JSON.stringify(dev.lines) + dev.err()).not.toContain('canary');
});

test('dev says which settings a reload has changed beside the agents', async () => {
  using place = workplace({ agents: null });
  place.write('words.ts', `export const WORDS = 'Plan.';`);
  const withTool = (result: string, more = '') =>
    agentsFile('first', `import { defineTool } from '${source('tools/tool.ts')}';`).replace(
      'defaults:',
      `tools: [defineTool({ name: 'look', description: 'Looks.', schema: { type: 'object' }, run: () => '${result}' })],
  ${more}defaults:`,
    );
  const file = place.write('agents.ts', withTool('a'));
  await using dev = await place.dev([file]);
  place.write('agents.ts', withTool('b', 'limits: { maxSteps: 49 }, '));
  expect(await lineWith(dev, 'reloaded')).toMatchObject({ changed: [], settings: ['limits', 'tools'] });
  const inCode = (words: string) => agentsFile('x').replace("{ reply: 'x {{n}}' }", `() => '${words}'`);
  place.write('agents.ts', inCode('one'));
  await lineWith(dev, 'reloaded', 2);
  place.write('agents.ts', inCode('two'));
  expect(await lineWith(dev, 'reloaded', 3)).toMatchObject({ changed: ['planner'], settings: [] });
});
