import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ask, siteTest } from './distributed.ts';
import { workplace } from './harness.ts';
import { readEvents } from './read-events.ts';

/** Of the file alone: each process, and each reload, loads what the agents file imports. */
const TOOL = new URL('../../src/tools/tool.ts', import.meta.url).href;
const ZOD = new URL('../../node_modules/zod/index.js', import.meta.url).href;

/** An agents file whose `app` writes to a file when it is opened and closed. `app`: what stands in its place. */
function agentsFile(name: string, app = appNamed(name)): string {
  return `import { appendFileSync } from 'node:fs';
import * as z from '${ZOD}';
import { defineTool } from '${TOOL}';
${app}
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  schema: z.object({}),
  needs: ['name'],
  run: (_, { app }) => 'seen in ' + app.name,
});
const rules = [{ when: { step: 2 }, reply: '{{last}}' }, { calls: [{ name: 'look', args: {} }] }];
export const troupe = {
  agents: [{ id: 'bo', provider: 'scripted', script: { rules }, tools: ['look'] }],
  tools: [look],
  defaults: { respondWhenUnaddressed: 'bo' },
};
`;
}

function appNamed(name: string): string {
  return `export const app = async () => {
  appendFileSync('app.log', 'open ${name}\\n');
  return { name: '${name}', close: () => appendFileSync('app.log', 'close ${name}\\n') };
};`;
}

function logIn(dir: string): string[] {
  const file = path.join(dir, 'app.log');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

test('send opens app of the agents file for its tools, and closes it', async () => {
  using place = workplace({ agents: null });
  place.write('agents.ts', agentsFile('one'));
  const sent = await place.run(['send', 'c', 'Go.', '--wait']);
  expect(sent).toMatchObject({ code: 0, err: '', out: expect.stringContaining('seen in one') });
  expect(logIn(place.dir)).toEqual(['open one', 'close one']);
  // What is stored needs none.
  await place.call(['tasks', 'c']);
  expect(logIn(place.dir)).toHaveLength(2);
});

test('a missing or wrong app is refused before anything is opened', async () => {
  using place = workplace({ agents: null });
  place.write('agents.ts', agentsFile('one', ''));
  const missing = await place.run(['send', 'c', 'Go.', '--json']);
  expect(missing.code).toBe(1);
  expect(missing.err).toContain('config_invalid');
  expect(missing.err).toContain('the tool look needs name, and there is no app');
  place.write('agents.ts', agentsFile('one', 'export const app = () => ({ nam: 1 });'));
  expect((await place.run(['send', 'c', 'Go.', '--json'])).err).toContain('app does not have it');
  expect(existsSync(path.join(place.dir, '.troupe/troupe.db'))).toBe(false);
});

test('doctor opens app and closes it, and says what is missing', async () => {
  using place = workplace({ agents: null });
  place.write('agents.ts', agentsFile('one'));
  expect((await place.run(['doctor'])).out).toMatch(/^ok +app +opened, and has what the tools need$/m);
  expect(logIn(place.dir)).toEqual(['open one', 'close one']);
  place.write('agents.ts', agentsFile('one', ''));
  expect(await place.run(['doctor'])).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^failed +app +the tool look needs name, and there is no app/m),
  });
});

test('dev opens the new app before the old one is closed, and keeps the old one if the new one fails', async () => {
  using place = workplace({ agents: null });
  const file = place.write('agents.ts', agentsFile('one'));
  const dev = await place.dev([file]);
  const said = async () => (await place.call(['send', 'c', 'Go.', '--wait'])).out;
  expect(await said()).toContain('seen in one');
  place.write(
    'agents.ts',
    agentsFile('two', `export const app = () => { throw new Error('no database'); };`),
  );
  await expect.poll(() => JSON.stringify(dev.lines)).toMatch(/app cannot be opened: no database/);
  expect(await said()).toContain('seen in one');
  place.write('agents.ts', agentsFile('three'));
  await expect.poll(() => JSON.stringify(dev.lines)).toMatch(/"reloaded"/);
  expect(await said()).toContain('seen in three');
  await dev[Symbol.asyncDispose]();
  expect(logIn(place.dir)).toEqual(['open one', 'open three', 'close one', 'close three']);
});

siteTest('serve and worker open app of the agents file, and close it', async (site) => {
  site.place.write('agents.json', { agents: [] });
  const file = site.place.write('agents.ts', agentsFile('one'));
  const api = await site.serve([file]);
  const worker = await site.worker([file]);
  const body = { author: { kind: 'user', id: 'ana', name: 'Ana' }, to: ['bo'], content: 'Go.' };
  await ask(`${api.url}/api/conversations/c/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const stream = await ask(`${api.url}/api/events?conversation=c&after=0`);
  const seen = await readEvents(stream, (all) => all.some(({ data }) => data['kind'] === 'turn.done'));
  expect(JSON.stringify(seen)).toContain('seen in one');
  worker.child.kill('SIGTERM');
  await worker.exited;
  expect(logIn(site.place.dir)).toEqual(['open one', 'open one', 'close one']);
});
