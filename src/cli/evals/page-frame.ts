import path from 'node:path';
import { html, raw } from 'hono/html';
import { existsSync, statSync } from 'node:fs';
import { TroupeError } from '../../base/errors.ts';
import type { ComparedScore, EvalsPackage, Scorecard, ScoredRun, ScoredScenario } from './evals-package.ts';

/** Markup in which every text is escaped. */
export type Markup = ReturnType<typeof html>;

/** Headings of the two sides. */
export const SIDE_WORDS: Record<Side, string> = { before: 'Baseline', after: 'This run' };

/** Links between the pages. All paths begin at the root, because the server has no other pages. */
export const LINKS = {
  scores: (query: { show?: string; page?: number }) => `/${queryOf(query)}`,
  /** The scores, at those of this scenario. */
  back: (scenario: string) => `/${queryOf({ scenario })}#here`,
  runs: (scenario: string, page?: number) => `/runs${queryOf({ scenario, page })}`,
  run: (scenario: string, seed: number, lines?: string) => `/run${queryOf({ scenario, seed, lines })}`,
  console: (side: Side, conversation: string) => `/${side}/${conversation}`,
  event: (side: Side, run: string, { conversation, seq }: { conversation: string; seq: number }) =>
    `/${side}/${run}/c/${encodeURIComponent(conversation)}?list=events&event=${seq}&tab=raw`,
};

function queryOf(parts: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}

/** A whole document with the look of the console, whose styles `vite build` puts into `evals.css`. */
export function documentOf(
  title: string,
  body: Markup | Markup[],
  width: 'narrow' | 'wide' = 'narrow',
): Markup {
  return html`${raw('<!doctype html>')}
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Troupe</title>
        <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/evals.css" />
      </head>
      <body>
        <main class="eval-page${width === 'wide' ? ' eval-wide' : ''}">${body}</main>
      </body>
    </html>`;
}

/** Shown in place of something that cannot be shown. */
export function problemPage(why: string): Markup {
  return documentOf('Not shown', [
    html`<nav class="eval-links" aria-label="Back"><a href="/">All scores</a></nav>`,
    html`<h1>This cannot be shown</h1>`,
    html`<p class="eval-problem">${why}</p>`,
  ]);
}

/** Links, one of which is marked as the current page. */
export function choices(
  label: string,
  links: readonly { words: string; to: string; isHere: boolean }[],
): Markup {
  const items = links.map(({ words, to, isHere }) =>
    isHere ? html`<a href="${to}" aria-current="page">${words}</a>` : html`<a href="${to}">${words}</a>`,
  );
  return html`<nav class="eval-links" aria-label="${label}">${items}</nav>`;
}

/** Links to the previous and next page. Null if there is only one page. */
export function pager(page: number, pages: number, linkTo: (page: number) => string): Markup | null {
  if (pages <= 1) return null;
  const before = page > 1 ? html`<a href="${linkTo(page - 1)}" rel="prev">Previous</a>` : null;
  const next = page < pages ? html`<a href="${linkTo(page + 1)}" rel="next">Next</a>` : null;
  return html`<nav class="eval-links" aria-label="Pages">
    ${before}<span>Page ${page} of ${pages}</span>${next}
  </nav>`;
}

/** A page of a list. A number out of range gives the first or last page. */
export function pageOf<T>(
  all: readonly T[],
  asked: number,
  size: number,
): { page: number; pages: number; items: readonly T[] } {
  const pages = Math.max(1, Math.ceil(all.length / size));
  const page = Math.min(Math.max(1, asked), pages);
  return { page, pages, items: all.slice((page - 1) * size, page * size) };
}

/** One side of a comparison: the baseline, or the current scores. */
export type Side = 'before' | 'after';

/** Scores, and where their runs' data are. */
export interface StoredScores {
  folder: string;
  card: Scorecard;
  scenarios: ReadonlyMap<string, ScoredScenario>;
  /** Data directories by conversation. */
  kept: ReadonlyMap<string, string>;
}

/** The scores that the pages of `troupe eval show` display. Without a baseline nothing has changed. */
export interface ShownScores {
  evals: EvalsPackage;
  before: StoredScores | null;
  after: StoredScores;
  compared: readonly ComparedScore[];
}

/** `place`: a folder with `scores.json`, or the file itself. Throws `config_invalid`. */
function readStoredScores(evals: EvalsPackage, place: string): StoredScores {
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
  const file = isFolder ? path.join(place, 'scores.json') : place;
  if (!existsSync(file)) {
    const text = `there are no scores in ${file}; writeScores(folder, scores) writes them, and keep: folder of scoreScenarios keeps the conversations`;
    throw new TroupeError('config_invalid', text, { file });
  }
  const card = evals.readScorecard(file);
  const folder = path.resolve(path.dirname(file));
  const scenarios = new Map(card.scenarios.map((scenario) => [scenario.scenario, scenario]));
  return { folder, card, scenarios, kept: evals.keptRuns(card, folder) };
}

/** Throws `config_invalid`. */
export function readShownScores(evals: EvalsPackage, after: string, before?: string): ShownScores {
  const shown = {
    evals,
    before: before === undefined ? null : readStoredScores(evals, before),
    after: readStoredScores(evals, after),
  };
  return { ...shown, compared: evals.compareScores((shown.before ?? shown.after).card, shown.after.card) };
}

/** Undefined if these scores have no such run. */
export function runOf(stored: StoredScores | null, scenario: string, seed: number): ScoredRun | undefined {
  return stored?.scenarios.get(scenario)?.runs.find((run) => run.seed === seed);
}

/** The data directory of a run. Null if its data were not kept, or no longer exist. */
export function dataOf(stored: StoredScores, conversation: string | undefined): string | null {
  const data = conversation === undefined ? undefined : stored.kept.get(conversation);
  return data !== undefined && existsSync(data) ? data : null;
}

/** The number of scored runs, and how many of them can still be viewed. */
export function countRuns({ after }: ShownScores): { runs: number; kept: number } {
  const runs = after.card.scenarios.flatMap((scenario) => scenario.runs);
  return { runs: runs.length, kept: runs.filter((run) => dataOf(after, run.conversation) !== null).length };
}
