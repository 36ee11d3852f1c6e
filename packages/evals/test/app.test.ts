import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { person, playConversation } from '../src/index.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const opened = globalThis as { troupeAppLog?: string[] };

/** An agents file whose `app` notes when it is opened and closed. */
function agentsFile(): URL {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-evals-app-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'agents.ts');
  writeFileSync(
    file,
    `import * as z from '${path.join(ROOT, 'node_modules/zod/index.js')}';
import { defineTool, defineTroupe, type ToolContext } from '${path.join(ROOT, 'src/index.ts')}';
export const app = () => {
  globalThis.troupeAppLog.push('open');
  return { parcels: ['4711'], close: () => globalThis.troupeAppLog.push('close') };
};
const track = defineTool({
  name: 'track',
  description: 'Counts parcels.',
  schema: z.object({}),
  needs: ['parcels'],
  run: (_, { app }: ToolContext<{ parcels: string[] }>) => app.parcels.join(),
});
const rules = [{ when: { step: 2 }, reply: '{{last}}' }, { calls: [{ name: 'track', args: {} }] }];
export const troupe = defineTroupe({
  app,
  agents: [{ id: 'desk', provider: 'scripted', script: { rules }, tools: ['track'] }],
  tools: [track],
  defaults: { respondWhenUnaddressed: 'desk' },
});
`,
  );
  opened.troupeAppLog = [];
  return new URL(`file://${file}`);
}

const mia = person('mia');

test('an eval opens app of the agents file for each run, and closes it', async () => {
  const run = await playConversation(agentsFile(), mia.says('Where is it?'));
  expect(run).toHaveSaid('desk', '4711');
  expect(opened.troupeAppLog).toEqual(['open', 'close']);
});

test('an app in the settings of an eval takes its place, and it is not opened where all tools are replaced', async () => {
  const company = agentsFile();
  const given = await playConversation(company, mia.says('Where is it?'), {
    troupe: { app: { parcels: ['1'] } },
  });
  expect(given).toHaveSaid('desk', '1');
  const replaced = await playConversation(company, mia.says('Where is it?'), {
    tools: { track: 'in Basel' },
  });
  expect(replaced).toHaveSaid('desk', 'in Basel');
  expect(opened.troupeAppLog).toEqual([]);
});
