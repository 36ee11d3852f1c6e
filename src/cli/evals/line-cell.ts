import { diffWordsWithSpace } from 'diff';
import { html } from 'hono/html';
import type { RunLine } from './evals-package.ts';
import { LINKS, type Markup, SIDE_WORDS } from './page-frame.ts';
import type { Side } from './shown-scores.ts';

/** Whose line it is, and the run that its links lead to. */
export interface Place {
  side: Side;
  conversation: string;
}

/** Characters of a text; the console has the rest. */
const MOST_TEXT = 2_000;
/** Bound of the work on one pair of texts: beyond it they are too different for marks to help. */
const MOST_EDITS = 100;

/** A line of a conversation. `other`: the line of the other side, to which differences are marked. */
export function lineCell(line: RunLine, other: RunLine | null, place: Place): Markup {
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

/** The text, and in it what the other side has not. */
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
