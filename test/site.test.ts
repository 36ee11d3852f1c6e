import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildSite, deadLinks, passagesOf, sitePages } from '../scripts/build-site.ts';
import { searchPages } from '../scripts/search-pages.ts';

test('the site has every page for users, and no link between them is dead', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-site-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(buildSite(folder)).toBeGreaterThan(40);
  expect(deadLinks(folder)).toEqual([]);
});

/** What people ask in their first week, and the page that the search must name first. */
const QUESTIONS = {
  'show words in my own page while they are written': 'show-progress-in-my-ui',
  'database handle in a tool': 'use-a-database-in-a-tool',
  'model that I run myself Ollama vLLM': 'use-my-own-model-server',
  'wait for both parallel tasks': 'wait-for-several-tasks',
  'what does an agent see that joins late': 'share-what-tools-found',
  'person must approve payments': 'wait-for-a-person',
  'test in which three days pass': 'let-days-pass-in-a-test',
  'import messages as JSON lines of my own': 'import-and-export',
  'what did it cost, cost is null': 'cut-the-bill',
  'why did the cache break': 'cut-the-bill',
  'worker killed in a tool call, crash': 'resume-after-a-crash',
  'rename an agent': 'rename-an-agent',
  'delete what one person said': 'delete-a-persons-data',
  'browser key for one conversation': 'give-a-browser-a-key',
  'health checks and metrics of a worker from code': 'monitor-a-worker-from-code',
  'stop a runaway agent': 'stop-a-runaway-agent',
  'PostgreSQL alone, how many workers': 'run-on-postgresql-alone',
  'upgrade without losing running turns': 'upgrade-without-losing-turns',
  'all events into my data warehouse': 'export-to-a-data-warehouse',
  'hand the photo to the agent I delegate to': 'hand-a-photo-on',
};

test.each(Object.entries(QUESTIONS))('the search answers: %s', (question, page) => {
  const [first] = searchPages(passagesOf(sitePages()), question);
  expect(first?.page.split('#')[0]).toBe(`docs/how-to/${page}.html`);
});
