import { html, raw } from 'hono/html';
import type { Change, ComparedScore, ScoredRun, RunScore } from './evals-package.ts';
import { count } from '../render/output.ts';
import {
  choices,
  documentOf,
  LINKS,
  type Markup,
  pageOf,
  pager,
  dataOf,
  type ShownScores,
  type StoredScores,
} from './page-frame.ts';

export type Shown = 'all' | 'changed' | 'failed';

const SCENARIOS = 20;
const RUNS = 50;
/** Most marks of one score. With more runs, only those in which it fails are marked. */
const MARKS = 20;

/**
 * All scenarios, the worst first: a matrix of their scores, then the result in every run, and what has changed. `scenario`: the
 * one that the page opens at, in place of `page`.
 */
export function scoresPage(
  shown: ShownScores,
  { show, page, scenario }: { show: Shown; page: number; scenario?: string | undefined },
): Markup {
  const listed: Record<Shown, readonly ComparedScore[]> = {
    all: shown.compared,
    changed: shown.compared.filter(({ change }) => shown.before !== null && change !== 'same'),
    failed: shown.compared.filter((row) => runsOf(shown, row).some((run) => isBad(takenIn(run, row)))),
  };
  const kinds = (shown.before ? ['all', 'changed', 'failed'] : ['all', 'failed']) as Shown[];
  const links = kinds.map((each) => ({
    words: `${WORDS[each]} (${listed[each].length})`,
    to: LINKS.scores(each === 'all' ? {} : { show: each }),
    isHere: each === show,
  }));
  const scenarios = worstFirst(shown, [...Map.groupBy(listed[show], (row) => row.scenario)]);
  const place = scenarios.findIndex(([name]) => name === scenario);
  const asked = place < 0 ? page : Math.floor(place / SCENARIOS) + 1;
  const { items, pages, ...at } = pageOf(scenarios, asked, SCENARIOS);
  const nothing = scenarios.length === 0 ? html`<p>No score is listed here.</p>` : null;
  return documentOf('Scores', [
    html`<h1>Scores</h1>`,
    html`<p>${headWords(shown)}</p>`,
    choices('Scores', links),
    ...(items.length === 0 ? [] : [matrixPart(shown, items)]),
    ...items.map(([name, rows]) => scenarioPart(shown, name, rows, name === scenario)),
    html`${nothing}${pager(at.page, pages, (other) => LINKS.scores({ show, page: other }))}`,
  ]);
}

const WORDS: Record<Shown, string> = { all: 'All', changed: 'Changed', failed: 'Failed in a run' };
const CHANGES: readonly Change[] = ['worse', 'better', 'same', 'new', 'gone'];

function headWords({ before, after, compared }: ShownScores): string {
  const runs = count(after.card.scenarios.flatMap((scenario) => scenario.runs).length, 'run');
  const about = `${count(after.scenarios.size, 'scenario')}, ${runs}.`;
  if (before === null) return `${about} There is no baseline to compare with.`;
  const changes = CHANGES.flatMap((change) => {
    const of = compared.filter((row) => row.change === change).length;
    return of === 0 ? [] : `${of} ${change}`;
  });
  return `${about} Scores against the baseline: ${changes.join(', ')}.`;
}

type ScenarioRows = readonly [scenario: string, rows: readonly ComparedScore[]];

/** By the number of scores that became worse, then by the share of results that do not hold; otherwise as they were given. */
function worstFirst(shown: ShownScores, scenarios: readonly ScenarioRows[]): ScenarioRows[] {
  const ranked = scenarios.map((scenario) => {
    const [, rows] = scenario;
    const results = rows.flatMap((row) => runsOf(shown, row).map((run) => isBad(takenIn(run, row))));
    return {
      scenario,
      worse: rows.filter(({ change }) => change === 'worse').length,
      bad: results.filter(Boolean).length / Math.max(1, results.length),
    };
  });
  return ranked
    .toSorted((one, other) => other.worse - one.worse || other.bad - one.bad)
    .map(({ scenario }) => scenario);
}

/** A row per scenario, a column per score. A result leads to the first run in which it does not hold. */
function matrixPart(shown: ShownScores, scenarios: readonly ScenarioRows[]): Markup {
  const scores = [...new Set(scenarios.flatMap(([, rows]) => rows.map(({ score }) => score)))];
  const rows = scenarios.map(
    ([scenario, of]) =>
      html`<tr>
        <th scope="row"><a href="${LINKS.runs(scenario)}">${scenario}</a></th>
        ${scores.map(
          (score) =>
            html`<td>
              ${matrixCell(
                shown,
                of.find((row) => row.score === score),
              )}
            </td>`,
        )}
      </tr>`,
  );
  return html`<div class="eval-matrix" tabindex="0" role="group" aria-label="Scenarios and scores">
    <table>
      <caption class="eval-quiet">
        The worst first
      </caption>
      <thead>
        <tr>
          <td></td>
          ${scores.map((score) => html`<th scope="col">${score}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}

function matrixCell(shown: ShownScores, row: ComparedScore | undefined): Markup {
  if (row === undefined) return html`<span class="eval-quiet">–</span>`;
  const { scenario, change, after } = row;
  const runs = runsOf(shown, row);
  const bad = runs.filter((run) => isBad(takenIn(run, row)));
  const isChange = shown.before !== null && change !== 'same';
  const words = [
    ...(bad.length === 0 ? [] : [`${bad.length} of ${runs.length} fail`]),
    ...(isChange ? [change] : []),
  ];
  const look = bad.length > 0 || change === 'worse' ? 'bad' : change === 'better' ? 'good' : 'plain';
  const [worst] = bad;
  const value = after === null || after.mean === null ? '–' : String(Number(after.mean.toPrecision(3)));
  return html`<a
    class="eval-mark${classOf(look)}"
    href="${worst ? LINKS.run(scenario, worst.seed) : LINKS.runs(scenario)}"
    >${[value, ...words].join(' · ')}</a
  >`;
}

function scenarioPart(
  shown: ShownScores,
  scenario: string,
  rows: readonly ComparedScore[],
  isOpenedAt: boolean,
): Markup {
  const runs = shown.after.scenarios.get(scenario)?.runs ?? [];
  const all =
    runs.length === 0
      ? html`<span class="eval-quiet">in the baseline only</span>`
      : html`<a href="${LINKS.runs(scenario)}"
          >${runs.length === 1 ? 'its run' : `its ${runs.length} runs`}</a
        >`;
  return html`<section class="eval-part" ${isOpenedAt ? raw(' id="here"') : null}>
    <h2>${scenario}</h2>
    <p class="eval-links">${all}${withoutData(shown.after, runs)}</p>
    <ul class="eval-scores">
      ${rows.map((row) => scorePart(shown, row))}
    </ul>
  </section>`;
}

function withoutData(after: StoredScores, runs: readonly ScoredRun[]): Markup | null {
  const lost = runs.filter(({ conversation }) => dataOf(after, conversation) === null).length;
  return lost === 0 ? null : html`<span class="eval-quiet">${lost} without kept data</span>`;
}

function scorePart(shown: ShownScores, row: ComparedScore): Markup {
  const { scenario, score, change, before, after } = row;
  const compared =
    shown.before === null
      ? null
      : html`<span><span class="eval-quiet">before</span> ${shown.evals.summaryWords(before)}</span
          >${changeMark(change)}`;
  const runs = runsOf(shown, row);
  const few = runs.length <= MARKS ? runs : runs.filter((run) => isBad(takenIn(run, row))).slice(0, MARKS);
  const marks = few.map((run) => runMark(run.seed, takenIn(run, row), LINKS.run(scenario, run.seed)));
  const more =
    few.length < runs.length
      ? html`<a class="eval-mark" href="${LINKS.runs(scenario)}">all ${runs.length}</a>`
      : null;
  return html`<li class="eval-score">
    <h3>${score}</h3>
    <span><span class="eval-quiet">mean</span> ${shown.evals.summaryWords(after)}</span>
    ${compared}
    <div class="eval-marks">${marks}${more}</div>
  </li>`;
}

const LOOKS: Partial<Record<Change, string>> = { better: ' eval-good', worse: ' eval-bad' };

function changeMark(change: Change): Markup {
  return html`<span><span class="eval-mark${LOOKS[change] ?? ''}">${change}</span></span>`;
}

/** The runs of a score; for a score that no longer exists, the baseline's. */
function runsOf(shown: ShownScores, { scenario, after }: ComparedScore): readonly ScoredRun[] {
  const stored = after === null ? shown.before : shown.after;
  return stored?.scenarios.get(scenario)?.runs ?? [];
}

function takenIn({ scores }: ScoredRun, { score }: ComparedScore): ScoredRun['scores'][number] | undefined {
  return scores.find((each) => each.score === score);
}

/** All runs of a scenario, with the scores that fail in each. */
export function runsPage(shown: ShownScores, scenario: string, page: number): Markup {
  const all = shown.after.scenarios.get(scenario)?.runs ?? [];
  const { items, pages, ...at } = pageOf(all, page, RUNS);
  const rows = items.map((run) => {
    const bad = run.scores.filter(isBad).map(({ score }) => score);
    const words = bad.length === 0 ? 'everything holds' : `does not hold: ${bad.join(', ')}`;
    const isKept = dataOf(shown.after, run.conversation) !== null;
    return html`<li class="eval-row">
      <a href="${LINKS.run(scenario, run.seed)}">Run ${run.seed}</a>
      <span class="eval-mark ${bad.length === 0 ? 'eval-good' : 'eval-bad'}">${words}</span>
      ${isKept ? null : html`<span class="eval-quiet">no kept data</span>`}
    </li>`;
  });
  return documentOf(scenario, [
    html`<nav class="eval-links" aria-label="Back"><a href="${LINKS.back(scenario)}">All scores</a></nav>`,
    html`<h1>${scenario}</h1>`,
    html`<ol class="eval-scores">
      ${rows}
    </ol>`,
    html`${pager(at.page, pages, (other) => LINKS.runs(scenario, other))}`,
  ]);
}

/** How a score of one run looks: a symbol that needs no colour, and words for it. */
interface ScoreMark {
  sign: string;
  words: string;
  look: 'good' | 'bad' | 'plain';
}

function scoreMark(taken: RunScore | undefined): ScoreMark {
  if (taken === undefined) return { sign: '–', words: 'not scored', look: 'plain' };
  if (taken.kind === 'none') return { sign: '–', words: 'no value', look: 'plain' };
  if (taken.kind === 'failed') return { sign: '!', words: 'the score failed', look: 'bad' };
  if (taken.value === true) return { sign: '✓', words: 'holds', look: 'good' };
  if (taken.value === false) return { sign: '✗', words: 'does not hold', look: 'bad' };
  return { sign: String(Number(taken.value.toPrecision(3))), words: '', look: 'plain' };
}

/** Whether a score does not hold or could not be computed. */
function isBad(taken: RunScore | undefined): boolean {
  return scoreMark(taken).look === 'bad';
}

/** The mark of one run, as a link to it. */
function runMark(seed: number, taken: RunScore | undefined, to: string): Markup {
  const { sign, words, look } = scoreMark(taken);
  return html`<a class="eval-mark${classOf(look)}" href="${to}"
    ><span class="eval-unseen">run </span>${seed}: ${sign}<span class="eval-unseen"> ${words}</span></a
  >`;
}

export function fullMark(taken: RunScore | undefined): Markup {
  const { sign, words, look } = scoreMark(taken);
  return html`<span class="eval-mark${classOf(look)}">${sign} ${words}</span>`;
}

function classOf(look: ScoreMark['look']): string {
  return look === 'plain' ? '' : ` eval-${look}`;
}
