import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import * as evals from '../../packages/evals/src/command.ts';
import { createEvalApp } from '../../src/cli/evals/eval-app.ts';
import { createOpenRuns } from '../../src/cli/evals/open-runs.ts';
import { readShownScores } from '../../src/cli/evals/page-frame.ts';
import type { Scorecard } from '../../packages/evals/src/index.ts';
import { type KeptScores, keptScores, MARKUP, SCENARIO } from '../support/kept-scores.ts';
import { workplace } from './harness.ts';

let kept: KeptScores;
beforeAll(async () => {
  kept = await keptScores();
});
afterAll(() => kept[Symbol.dispose]());

const RUN = `run?${new URLSearchParams({ scenario: SCENARIO, seed: '1' })}`;

/** Asks the pages as a browser of this machine would, without a server. */
function pages(after: string, before?: string) {
  const runs = createOpenRuns(evals);
  onTestFinished(() => runs[Symbol.asyncDispose]());
  const app = createEvalApp(readShownScores(evals, after, before), runs);
  return async (to: string, init: RequestInit = {}) => {
    const address = to.startsWith('http') ? to : `http://127.0.0.1/${to}`;
    const answer = await app.request(address, { headers: { accept: 'text/html' }, ...init });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
}

/** What a reader sees: without elements, each text once. */
function wordsOf(page: string): string {
  return page.replaceAll(/<[^<>]*>/g, ' ').replaceAll(/\s+/g, ' ');
}

test('eval show serves the scores, each run beside that of the baseline, and the console of both', async () => {
  using place = workplace({ agents: null });
  const temporary = path.join(place.dir, 'tmp');
  mkdirSync(temporary);
  const database = path.join(kept.after, 'runs', kept.conversations[0]!, 'troupe.db');
  const stored = readFileSync(database);
  {
    await using shown = await place.start(['eval', 'show', kept.after, kept.before, '--port', '0'], {
      TMPDIR: temporary,
    });
    expect(shown.ready).toMatchObject({ runs: 1, kept: 1, folder: kept.after, baseline: kept.before });
    const { url } = shown.ready as { url: string };
    const list = await (await fetch(url)).text();
    expect(wordsOf(list)).toMatch(/it is Monday mean 0 \S+ \S+ before 1 \S+ \S+ same run 1: ✗ does not hold/);
    const run = wordsOf(await (await fetch(`${url}/${RUN}`)).text());
    expect(run).toMatch(
      /it is Monday · differs Baseline ✓ holds This run ✗ does not hold expected that desk says/,
    );
    expect(run).toContain('@desk calls track');
    for (const side of ['before', 'after']) {
      const api = `${url}/${side}/${kept.conversations[0]}/api/conversations/${kept.conversations[0]}/events`;
      const events = await (await fetch(api)).text();
      expect(events).toContain(side === 'before' ? 'on Monday' : 'on Friday');
      expect((await fetch(api, { method: 'POST', body: '{}' })).status).toBe(403);
    }
    expect(readdirSync(temporary).filter((name) => name.startsWith('troupe-eval-show-'))).toHaveLength(2);
  }
  expect(readdirSync(temporary).filter((name) => name.startsWith('troupe-eval-show-'))).toEqual([]);
  expect(readFileSync(database)).toEqual(stored);
});

test('lines are beside those that they are to be compared with, and words that differ are marked', async () => {
  const get = pages(kept.after, kept.before);
  const { text } = await get(RUN);
  expect(text).toContain('<del>Monday</del>');
  expect(text).toContain('<ins>Friday</ins>');
  expect(wordsOf(text)).toContain('All lines (3) Only differences (1)');
  expect((await get(`${RUN}&lines=changed`)).text).toContain('<summary>2 lines are the same</summary>');
  expect(text).toContain(`/c/${kept.conversations[0]}?list=events&amp;event=`);
});

test('names and words of others are texts, never markup', async () => {
  const get = pages(kept.after, kept.before);
  for (const to of ['', RUN, `runs?${new URLSearchParams({ scenario: SCENARIO })}`]) {
    const { text, headers } = await get(to);
    expect(text).toContain('a parcel &lt;img src=x onerror=&quot;');
    expect(text).not.toMatch(/<(?:img|script)/);
    expect(headers.get('content-security-policy')).toContain("default-src 'self'");
  }
  expect(MARKUP).toMatch(/<img/);
});

test('the console renders the prompts of a run again, though no agents file is there', async () => {
  const [conversation = ''] = kept.conversations;
  const get = pages(kept.after);
  const { status, text } = await get(`after/${conversation}/api/turns/${conversation}:desk:1/prompt?step=2`);
  expect([status, JSON.parse(text)]).toEqual([200, expect.objectContaining({ verified: true, step: 2 })]);
  expect(text).toContain('in Bern');
});

test('the filter shows what has changed, or what does not hold in a run', async () => {
  const get = pages(kept.after, kept.before);
  expect(wordsOf((await get('')).text)).toContain(
    'All (4) Failed in a run (1)'.replace('Failed', 'Changed (0) Failed'),
  );
  expect(wordsOf((await get('?show=failed')).text)).not.toContain('turns');
  expect(wordsOf((await get('?show=changed')).text)).toContain('No score is listed here.');
});

test('other host names are refused, and so is everything that would write', async () => {
  const get = pages(kept.after);
  const console_ = `after/${kept.conversations[0]}/`;
  for (const to of ['', RUN, console_]) {
    const other = await get(`http://evil.example/${to}`);
    expect([other.status, other.text]).toEqual([403, expect.stringContaining('host_refused')]);
    const post = await get(to, { method: 'POST' });
    expect([post.status, post.text]).toEqual([403, expect.stringContaining('read_only')]);
  }
});

test('scores of before runs were kept are shown, and each run says that it has no data', async () => {
  using place = workplace({ agents: null });
  const card = JSON.parse(readFileSync(path.join(kept.after, 'scores.json'), 'utf8')) as Scorecard;
  for (const scenario of card.scenarios) for (const run of scenario.runs) delete run.conversation;
  const get = pages(place.write('scores.json', card));
  expect(wordsOf((await get('')).text)).toContain('its run 1 without kept data');
  expect(wordsOf((await get(RUN)).text)).toMatch(/turns This run 1 .+The data of this run were not kept/);
});

test('a name that leads out of the folder is no run', async () => {
  using place = workplace({ agents: null });
  const card = JSON.parse(readFileSync(path.join(kept.after, 'scores.json'), 'utf8')) as Scorecard;
  const elsewhere = path.join(kept.after, 'runs', kept.conversations[0]!);
  card.scenarios[0]!.runs[0]!.conversation = path.relative(path.join(place.dir, 'runs'), elsewhere);
  const get = pages(place.write('scores.json', card));
  expect((await get(RUN)).text).toContain('were not kept');
  for (const name of ['..%2F..', 'nobody', kept.conversations[0]])
    expect((await get(`after/${name}/api/conversations`)).status).toBe(404);
});

test('damaged data are named beside what the scores say', async () => {
  using place = workplace({ agents: null });
  const [conversation = ''] = kept.conversations;
  place.write('scores.json', readFileSync(path.join(kept.after, 'scores.json'), 'utf8'));
  const data = path.join(place.dir, 'runs', conversation);
  mkdirSync(data, { recursive: true });
  const get = pages(place.dir, kept.before);
  expect(wordsOf((await get(RUN)).text)).toMatch(/does not hold.+store_corrupt: there is no database/);
  writeFileSync(path.join(data, 'troupe.db'), 'x'.repeat(5_000));
  expect(wordsOf((await get(RUN)).text)).toContain(`cannot be read. store_corrupt: ${data}`);
  expect((await get(`after/${conversation}/api/conversations`)).text).toContain('store_corrupt');
});

test('a thousand runs are listed in pages, and only those that failed on the first', async () => {
  using place = workplace({ agents: null });
  const runs = Array.from({ length: 1_000 }, (_, at) => ({
    seed: at + 1,
    scores: [{ score: 'kind', kind: 'scored' as const, value: at % 100 !== 0, why: '' }],
  }));
  const summary = {
    score: 'kind',
    measure: 'rate',
    better: 'more',
    n: 1_000,
    failed: 0,
    mean: 0.99,
    low: 0.98,
    high: 1,
  };
  const scenarios = [{ scenario: 's', scores: [summary], runs }];
  const card = { version: 1, repeats: 1_000, scenarios, judges: { calls: 0, tokens: 0, dollars: 0 } };
  const get = pages(place.write('scores.json', card));
  const { text } = await get('');
  expect(text.match(/does not hold/g)).toHaveLength(10);
  expect(wordsOf(text)).toContain('all 1000');
  const last = (await get('runs?scenario=s&page=99')).text;
  expect(wordsOf(last)).toContain('Run 951 everything holds');
  expect(wordsOf(last)).toContain('Page 20 of 20');
});

test('a matrix has a row per scenario, the worst first, and its results lead to a run that fails', async () => {
  using place = workplace({ agents: null });
  const card = (values: Record<string, boolean[]>) => ({
    version: 1,
    repeats: 4,
    scenarios: Object.entries(values).map(([scenario, taken]) => ({
      scenario,
      scores: [{ score: 'polite', measure: 'rate', better: 'more', failed: 0, ...rateOf(taken) }],
      runs: taken.map((value, at) => ({
        seed: at + 1,
        scores: [{ score: 'polite', kind: 'scored' as const, value, why: '' }],
      })),
    })),
    judges: { calls: 0, tokens: 0, dollars: 0 },
  });
  const rateOf = (taken: boolean[]) => {
    const mean = taken.filter(Boolean).length / taken.length;
    return { n: taken.length, mean, low: Math.max(0, mean - 0.1), high: Math.min(1, mean + 0.1) };
  };
  const [yes, no] = [true, false];
  const before = place.write('before.json', card({ good: [yes, yes], poor: [no, no], fallen: [yes, yes] }));
  const after = place.write('after.json', card({ good: [yes, yes], poor: [no, no], fallen: [yes, no] }));
  const get = pages(after, before);
  const { text } = await get('');
  const [matrix = ''] = /<table>[^]*<\/table>/.exec(text) ?? [];
  expect(wordsOf(matrix)).toContain('polite fallen 0.5 · 1 of 2 fail · worse poor 0 · 2 of 2 fail good 1');
  expect(matrix).toContain('/run?scenario=fallen&amp;seed=2');
  expect([...text.matchAll(/<h2>(\w+)/g)].map(([, name]) => name)).toEqual(['fallen', 'poor', 'good']);
  expect((await get('run?scenario=poor&seed=1')).text).toContain('href="/?scenario=poor#here"');
  expect((await get('?scenario=poor')).text).toMatch(/id="here">\s*<h2>poor/);
});

test('eval compare says how to look at what it compares', async () => {
  using place = workplace({ agents: null });
  const [before, after] = [kept.before, kept.after].map((folder) => path.join(folder, 'scores.json')) as [
    string,
    string,
  ];
  const { out } = await place.call(['eval', 'compare', before, after]);
  expect(out).toContain(`look at the conversations: npx troupe eval show ${after} ${before}\n`);
});

test('a folder without scores is refused with what to do, and what is unknown has no page', async () => {
  using place = workplace({ agents: null });
  const { code, json } = await place.call(['eval', 'show', 'nowhere', '--json']);
  expect(code).toBe(1);
  expect(json).toMatchObject({
    error: { code: 'config_invalid', message: expect.stringContaining('writeScores') },
  });
  const get = pages(kept.after);
  for (const to of ['no', 'run?scenario=x', 'runs?scenario=x', 'before/x/']) {
    const { status, text } = await get(to);
    expect(status).toBe(404);
    expect(wordsOf(text)).toContain('All scores This cannot be shown route_unknown: there is nothing at');
  }
  const { text } = await get('before/x/api/conversations', { headers: { accept: 'application/json' } });
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'route_unknown' } });
});

test('few runs stay open, and one that is in use is not closed for another', async () => {
  using place = workplace({ agents: null });
  vi.stubEnv('TMPDIR', place.dir);
  onTestFinished(() => void vi.unstubAllEnvs());
  const copies = () => readdirSync(place.dir).filter((name) => name.startsWith('troupe-eval-show-'));
  const [conversation = ''] = kept.conversations;
  const data = path.join(kept.after, 'runs', conversation);
  {
    await using runs = createOpenRuns(evals);
    await runs.use('/after/first', data, async ({ troupe }) => {
      for (let at = 0; at < 9; at += 1) await runs.use(`/after/${at}`, data, () => {});
      expect((await troupe.events(conversation)).events.length).toBeGreaterThan(3);
    });
    expect(copies()).toHaveLength(6);
    const page = await runs.use('/after/0', data, ({ app }) =>
      app.fetch(new Request('http://127.0.0.1/after/0/healthz')),
    );
    expect(page.status).toBe(200);
  }
  expect(copies()).toEqual([]);
});
