import { html } from 'hono/html';
import type { RunLine, RunScore, ScoredRun } from './evals-package.ts';
import { count } from '../render/output.ts';
import { alignLines, type LinePair } from './align-lines.ts';
import { lineCell, type Place } from './line-cell.ts';
import { choices, documentOf, LINKS, type Markup, SIDE_WORDS } from './page-frame.ts';
import { fullMark } from './score-marks.ts';
import type { ShownScores, Side } from './shown-scores.ts';

/** What a side has to show of a run. */
export type RunSide =
  | { readonly kind: 'read'; readonly conversation: string; readonly lines: readonly RunLine[] }
  /** Why there is nothing. */
  | { readonly kind: 'missing'; readonly why: string };

/** One run beside that of the baseline. */
interface ShownRun {
  scenario: string;
  seed: number;
  /** `changed`: lines that are the same are folded. */
  lines: 'all' | 'changed';
  scored: Record<Side, ScoredRun | undefined>;
  sides: Record<Side, RunSide>;
}

/** Lines of each side; the console has the rest. */
const MOST_LINES = 500;
/** So many lines in a row that are the same are folded. */
const FOLDED = 2;

export function runPage(shown: ShownScores, run: ShownRun): Markup {
  const { scenario, seed } = run;
  const isCompared = shown.before !== null;
  return documentOf(
    `${scenario}, run ${seed}`,
    [
      html`<nav class="eval-links" aria-label="Runs">
        <a href="/">All scores</a><a href="${LINKS.runs(scenario)}">All runs</a>${neighbours(shown, run)}
      </nav>`,
      html`<h1>${scenario}: run ${seed}</h1>`,
      scoresPart(run, isCompared),
      ...conversationPart(run, isCompared),
    ],
    isCompared ? 'wide' : 'narrow',
  );
}

function neighbours({ after }: ShownScores, { scenario, seed }: ShownRun): Markup[] {
  const seeds = after.scenarios.get(scenario)?.runs.map((run) => run.seed) ?? [];
  const at = seeds.indexOf(seed);
  return [seeds[at - 1], at < 0 ? undefined : seeds[at + 1]].flatMap((other, side) =>
    other === undefined
      ? []
      : [
          html`<a href="${LINKS.run(scenario, other)}" rel="${side === 0 ? 'prev' : 'next'}"
            >Run ${other}</a
          >`,
        ],
  );
}

function scoresPart({ scored }: ShownRun, isCompared: boolean): Markup {
  const names = new Set(
    [scored.after, scored.before].flatMap((run) => run?.scores.map(({ score }) => score) ?? []),
  );
  const takenIn = (run: ScoredRun | undefined, name: string) =>
    run?.scores.find(({ score }) => score === name);
  const rows = [...names].map((name) => {
    const [before, after] = [takenIn(scored.before, name), takenIn(scored.after, name)];
    const differs = isCompared && !isSameScore(before, after);
    return html`<li
      class="eval-row eval-both${isCompared ? '' : ' eval-one'}${differs ? ' eval-differs' : ''}"
    >
      <h3 class="${isCompared ? 'eval-label' : ''}">${name}${differs ? ' · differs' : ''}</h3>
      ${isCompared ? scoreCell(SIDE_WORDS.before, before) : null}${scoreCell(SIDE_WORDS.after, after)}
    </li>`;
  });
  return html`<section class="eval-part">
    <h2>Claims and scores</h2>
    <ul class="eval-scores">
      ${rows}
    </ul>
  </section>`;
}

function scoreCell(side: string, taken: RunScore | undefined): Markup {
  const why = taken === undefined || taken.why === '' ? null : html`<p class="eval-quiet">${taken.why}</p>`;
  return html`<div class="eval-side">
    <span><span class="eval-label">${side}</span> ${fullMark(taken)}</span>${why}
  </div>`;
}

function isSameScore(one: RunScore | undefined, other: RunScore | undefined): boolean {
  const valueOf = (taken: RunScore | undefined) =>
    taken?.kind === 'scored' ? taken.value : (taken?.kind ?? null);
  return valueOf(one) === valueOf(other);
}

function conversationPart(run: ShownRun, isCompared: boolean): Markup[] {
  const { sides, scenario, seed, lines } = run;
  const shownSides: readonly Side[] = isCompared ? ['before', 'after'] : ['after'];
  const places = shownSides.map((side) => placeOf(side, sides[side]));
  const pairs = alignLines(linesOf(sides.before), linesOf(sides.after));
  const differing = pairs.filter(({ kind }) => kind !== 'same').length;
  const isBoth = sides.before.kind === 'read' && sides.after.kind === 'read';
  const filter = choices('Lines', [
    { words: `All lines (${pairs.length})`, to: LINKS.run(scenario, seed), isHere: lines === 'all' },
    {
      words: `Only differences (${differing})`,
      to: LINKS.run(scenario, seed, 'changed'),
      isHere: lines === 'changed',
    },
  ]);
  const isFolded = isBoth && lines === 'changed';
  return [
    html`<section class="eval-part">
      <h2>Conversation</h2>
      <div class="eval-both${isCompared ? '' : ' eval-one'}">${places}</div>
      ${isBoth ? filter : null}
      <ol class="eval-scores">
        ${isFolded ? foldedRows(run, pairs) : pairs.map((pair) => pairRow(run, pair, isBoth))}
      </ol>
    </section>`,
  ];
}

/** What a side is, and the way to its console. */
function placeOf(side: Side, shown: RunSide): Markup {
  if (shown.kind === 'missing')
    return html`<div class="eval-side">
      <h3>${SIDE_WORDS[side]}</h3>
      <p class="eval-problem">${shown.why}</p>
    </div>`;
  const { conversation, lines } = shown;
  const rest = lines.length - MOST_LINES;
  const to = `${LINKS.console(side, conversation)}/c/${conversation}`;
  return html`<div class="eval-side">
    <h3>${SIDE_WORDS[side]}</h3>
    <span>
      ${count(lines.length, 'line')}${rest > 0 ? `, the first ${MOST_LINES} here` : ''} ·
      <a href="${to}">Open in the console<span class="eval-unseen">: ${SIDE_WORDS[side]}</span></a>
    </span>
  </div>`;
}

function linesOf(side: RunSide): readonly RunLine[] {
  return side.kind === 'read' ? side.lines.slice(0, MOST_LINES) : [];
}

function foldedRows(run: ShownRun, pairs: readonly LinePair[]): Markup[] {
  const rows: Markup[] = [];
  for (let at = 0; at < pairs.length;) {
    const next = pairs.findIndex(({ kind }, index) => index >= at && kind !== 'same');
    const end = next < 0 ? pairs.length : next;
    const same = pairs.slice(at, end).map((pair) => pairRow(run, pair, true));
    if (same.length < FOLDED) rows.push(...same);
    else
      rows.push(
        html`<li>
          <details class="eval-fold">
            <summary>${same.length} lines are the same</summary>
            <ol>
              ${same}
            </ol>
          </details>
        </li>`,
      );
    if (end < pairs.length) rows.push(pairRow(run, pairs[end]!, true));
    at = end + 1;
  }
  return rows;
}

const LABELS: Record<LinePair['kind'], string | null> = {
  same: null,
  differs: 'differs',
  gone: 'only in the baseline',
  new: 'only in this run',
};

/** `isBoth`: both sides are there to be compared. */
function pairRow({ sides }: ShownRun, pair: LinePair, isBoth: boolean): Markup {
  const before = 'before' in pair ? pair.before : null;
  const after = 'after' in pair ? pair.after : null;
  const place = (side: Side): Place => ({ side, conversation: conversationOf(sides[side]) });
  if (!isBoth) {
    const [line, side] = after ? [after, 'after' as const] : [before!, 'before' as const];
    return html`<li class="eval-row">${lineCell(line, null, place(side))}</li>`;
  }
  const label = LABELS[pair.kind];
  const none = html`<div class="eval-side eval-none"></div>`;
  const other = pair.kind === 'differs';
  return html`<li class="eval-row eval-both ${label === null ? 'eval-same' : 'eval-differs'}">
    ${label === null ? null : html`<span class="eval-label">${label}</span>`}
    ${before ? lineCell(before, other ? after : null, place('before')) : none}
    ${after ? lineCell(after, other ? before : null, place('after')) : none}
  </li>`;
}

function conversationOf(side: RunSide): string {
  return side.kind === 'read' ? side.conversation : '';
}
