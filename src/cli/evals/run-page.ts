import { html } from 'hono/html';
import type { RunLine, RunScore, ScoredRun } from './evals-package.ts';
import { count } from '../render/output.ts';
import {
  choices,
  documentOf,
  LINKS,
  type Markup,
  SIDE_WORDS,
  type ShownScores,
  type Side,
} from './page-frame.ts';
import { fullMark } from './scores-page.ts';
import { diffArrays, diffWordsWithSpace } from 'diff';

/** What a side can show of a run. */
export type RunSide =
  | { readonly kind: 'read'; readonly conversation: string; readonly lines: readonly RunLine[] }
  /** `why`: the reason that there is nothing. */
  | { readonly kind: 'missing'; readonly why: string };

/** One run beside the baseline's. */
interface ShownRun {
  scenario: string;
  seed: number;
  /** `changed`: equal lines are folded. */
  lines: 'all' | 'changed';
  scored: Record<Side, ScoredRun | undefined>;
  sides: Record<Side, RunSide>;
}

/** Most lines of each side; the console shows all. */
const MOST_LINES = 500;
/** Number of consecutive equal lines that are folded. */
const FOLDED = 2;

export function runPage(shown: ShownScores, run: ShownRun): Markup {
  const { scenario, seed } = run;
  const isCompared = shown.before !== null;
  return documentOf(
    `${scenario}, run ${seed}`,
    [
      html`<nav class="eval-links" aria-label="Runs">
        <a href="${LINKS.back(scenario)}">All scores</a
        ><a href="${LINKS.runs(scenario)}">All runs</a>${neighbours(shown, run)}
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

/** A side's heading, with a link to its console. */
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

/** `isBoth`: both sides exist and can be compared. */
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

/** A line of each side, or a line that the other side lacks. */
type LinePair =
  | { readonly kind: 'same'; readonly before: RunLine; readonly after: RunLine }
  | { readonly kind: 'differs'; readonly before: RunLine; readonly after: RunLine }
  | { readonly kind: 'gone'; readonly before: RunLine }
  | { readonly kind: 'new'; readonly after: RunLine };

/**
 * Aligns the lines of two runs in order. Equal lines are paired first; between them, lines of the same speaker and calls of
 * the same tool.
 */
function alignLines(before: readonly RunLine[], after: readonly RunLine[]): LinePair[] {
  return aligned(before, after, {
    keyOf: wholeOf,
    pair: (one, other) => ({ kind: 'same', before: one, after: other }),
    rest: pairsBetween,
  });
}

function pairsBetween(before: readonly RunLine[], after: readonly RunLine[]): LinePair[] {
  return aligned(before, after, {
    keyOf: shapeOf,
    pair: (one, other) => ({ kind: 'differs', before: one, after: other }),
    rest: (gone, added) => [
      ...gone.map((line): LinePair => ({ kind: 'gone', before: line })),
      ...added.map((line): LinePair => ({ kind: 'new', after: line })),
    ],
  });
}

interface Alignment {
  /** Lines with the same key are paired. */
  keyOf: (line: RunLine) => string;
  pair: (before: RunLine, after: RunLine) => LinePair;
  /** The lines between two pairs. */
  rest: (before: readonly RunLine[], after: readonly RunLine[]) => LinePair[];
}

function aligned(
  before: readonly RunLine[],
  after: readonly RunLine[],
  { keyOf, pair, rest }: Alignment,
): LinePair[] {
  const pairs: LinePair[] = [];
  const left = { before: [...before], after: [...after] };
  let gone: RunLine[] = [];
  let added: RunLine[] = [];
  for (const { count, ...change } of diffArrays(before.map(keyOf), after.map(keyOf))) {
    if (change.removed) gone = left.before.splice(0, count);
    else if (change.added) added = left.after.splice(0, count);
    else {
      pairs.push(...rest(gone, added));
      [gone, added] = [[], []];
      const others = left.after.splice(0, count);
      for (const [at, line] of left.before.splice(0, count).entries()) pairs.push(pair(line, others[at]!));
    }
  }
  return [...pairs, ...rest(gone, added)];
}

function wholeOf(line: RunLine): string {
  if (line.kind !== 'called') return JSON.stringify([shapeOf(line), line.event.to, line.text]);
  const { args, result } = line;
  return JSON.stringify([shapeOf(line), args, result && [result.body.outcome, result.body.content]]);
}

function shapeOf(line: RunLine): string {
  return JSON.stringify([line.kind, line.who, line.kind === 'called' ? line.tool : line.event.kind]);
}

/** Whose line it is, and the run to which its links lead. */
interface Place {
  side: Side;
  conversation: string;
}

/** Most characters of a text; the console shows all. */
const MOST_TEXT = 2_000;
/** Most edits between two texts: beyond it they are too different for marks to help. */
const MOST_EDITS = 100;

/** A line of a conversation. `other`: the line of the other side, from which differences are marked. */
function lineCell(line: RunLine, other: RunLine | null, place: Place): Markup {
  const { event } = line;
  const who = event.author.kind === 'agent' ? `@${event.author.id}` : event.author.name;
  const whom = event.to.length === 0 ? '' : ` to ${event.to.map((id) => `@${id}`).join(' ')}`;
  const where = event.conversation === place.conversation ? '' : ` in ${event.conversation}`;
  const what = line.kind === 'called' ? ` calls ${line.tool}` : whom;
  const to = LINKS.event(place.side, place.conversation, event);
  return html`<div class="eval-side">
    <span class="eval-label eval-whose">${SIDE_WORDS[place.side]}</span>
    <span><a href="${to}">${who}${what}</a> <span class="eval-label">#${event.seq}${where}</span></span>
    ${line.kind === 'called' ? callText(line, other, place) : said(line.text, textOf(other), place)}
  </div>`;
}

type Call = Extract<RunLine, { kind: 'called' }>;

function callText({ args, result }: Call, other: RunLine | null, { side }: Place): Markup {
  const call = other?.kind === 'called' ? other : null;
  const outcome = result === null ? 'no result' : result.body.outcome;
  const given =
    result === null ? null : html`<pre>${marked(result.body.content, resultOf(call), side)}</pre>`;
  return html`<pre>${marked(args, call?.args ?? null, side)}</pre>
    <span class="eval-label">${outcome}</span>${given}`;
}

function resultOf(call: Call | null): string | null {
  return call?.result?.body.content ?? null;
}

function textOf(line: RunLine | null): string | null {
  return line === null || line.kind === 'called' ? null : line.text;
}

function said(text: string, other: string | null, { side }: Place): Markup {
  return html`<p>${marked(text, other, side)}</p>`;
}

/** The text, with marks where the other side differs. */
function marked(text: string, other: string | null, side: Side): Markup {
  const shown = cut(text);
  const rest = text.length - shown.length;
  const more =
    rest > 0 ? html`<span class="eval-label">… ${rest} more characters in the console</span>` : null;
  return html`${other === null || other === text ? shown : pieces(shown, cut(other), side)}${more}`;
}

function pieces(text: string, other: string, side: Side): Markup {
  const [before, after] = side === 'before' ? [text, other] : [other, text];
  const changes = diffWordsWithSpace(before, after, { maxEditLength: MOST_EDITS });
  if (changes === undefined) return html`${text}`;
  const own = changes.map(({ value, added, removed }) => {
    if (!added && !removed) return html`${value}`;
    if (side === 'before') return removed ? html`<del>${value}</del>` : null;
    return added ? html`<ins>${value}</ins>` : null;
  });
  return html`${own}`;
}

function cut(text: string): string {
  return text.length <= MOST_TEXT ? text : text.slice(0, MOST_TEXT).toWellFormed();
}
