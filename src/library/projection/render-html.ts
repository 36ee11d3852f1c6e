import { type ByKind, forKind } from '../../events/aspects.ts';
import type { KindAbout } from '../../events/kinds.ts';
import type { Event, EventKind, MessageBody } from '../../events/index.ts';
import { handoffText, messageText, taskText } from '../../events/message-text.ts';
import type { AgentView, Projection, TurnView } from './model.ts';
import { type Formatted, formatMarkdown } from './markdown.ts';
import { needOrder, shownCondition } from './needs.ts';
import { foldEvents, newProjection } from './projection.ts';
import { rowOf } from './row.ts';

const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** Events that are folded at a time: in so few no turn begins that the projection lets go. */
const SLICE = 400;

/**
 * A conversation as one self-contained page: no script, no request. Consecutive events of a turn are grouped. All
 * events stay in the order of the log, which is read twice: first for the head of the page, then for the events. `usd`:
 * what its model calls cost; null if no price is known.
 */
export async function* exportHtml(
  conversation: string,
  read: () => AsyncIterable<readonly Event[]>,
  usd: number | null = null,
): AsyncGenerator<string, void> {
  let projection = newProjection(conversation);
  const turns = new Map<string, TurnView>();
  for await (const events of read()) {
    for (let at = 0; at < events.length; at += SLICE) {
      projection = foldEvents(projection, events.slice(at, at + SLICE));
      for (const turn of projection.turns) turns.set(turn.id, turn);
    }
  }
  yield headOf(projection, usd);
  yield indexOf([...turns.values()]);
  let open: string | null = null;
  for await (const event of flat(read())) {
    // Other events may follow the start of a turn, so the group begins with the next event of the turn.
    const turn = event.kind === 'turn.started' ? null : (event.turn ?? null);
    const isOther = turn !== open;
    const before = `${isOther && open !== null ? '</details>\n' : ''}${isOther && turn !== null ? turnHead(turn, turns.get(turn)) : ''}`;
    open = turn;
    yield `${before}${eventHtml(event)}`;
  }
  yield `${open === null ? '' : '</details>\n'}</main>\n</body>\n</html>\n`;
}

async function* flat<T>(pages: AsyncIterable<readonly T[]>): AsyncGenerator<T> {
  for await (const page of pages) yield* page;
}

function headOf(projection: Projection, usd: number | null): string {
  const { conversation, seq, began, at, mode, phase, archived, totals } = projection;
  const name = escapeHtml(conversation);
  const facts = [
    `${seq} events, ${time(began)} to ${time(at)} (UTC)`,
    `mode ${mode}${phase === null ? '' : `, phase ${phase}`}${archived ? ', archived' : ''}`,
    `${totals.turns} turns, ${totals.failed} failed, ${totals.compactions} compactions`,
    `${totals.tokens.input} tokens in (${totals.tokens.cacheRead} from a cache), ${totals.tokens.output} out`,
    ...(usd === null ? [] : [`$${usd.toFixed(usd < 0.01 ? 6 : 2)} at the present prices`]),
  ];
  const rows = needOrder(Object.values(projection.agents)).map(agentRow).join('');
  const agents =
    rows === ''
      ? ''
      : `<table><thead><tr><th>Agent</th><th>State</th><th class="n">Turns</th><th class="n">Failed</th><th class="n">Tokens in</th><th class="n">Out</th></tr></thead><tbody>${rows}</tbody></table>\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name}</title>
<style>${HTML_STYLE}</style>
</head>
<body>
<header><h1>${name}</h1>
<p class="about">${facts.map(escapeHtml).join('<br>')}</p>
${agents}</header>
`;
}

/** All turns, each a link to its beginning. */
function indexOf(turns: readonly TurnView[]): string {
  const lines = turns.map(({ from, agent, number, status, trigger }) => {
    const words = [`@${agent}, turn ${number}`, ...(status === 'done' ? [] : [status])].join(' · ');
    const look = status === 'failed' ? ' class="bad"' : '';
    return `<li><a href="#e${from}"${look}>${escapeHtml(words)}</a> ${escapeHtml(trigger?.text ?? '')}</li>\n`;
  });
  const list = `<details><summary>Turns</summary>\n<ol>\n${lines.join('')}</ol>\n</details>\n`;
  return `${lines.length === 0 ? '' : `<nav>${list}</nav>\n`}<main>\n`;
}

function agentRow(agent: AgentView): string {
  const { id, name, turns, failed, tokens, problem } = agent;
  const condition = shownCondition(agent);
  const said = name === id ? `@${id}` : `${name} (@${id})`;
  const state = problem ? `${condition}: ${problem.code}` : condition;
  const look = condition === 'failed' ? ' class="bad"' : '';
  const numbers = [turns, failed, tokens.input, tokens.output].map((value) => `<td class="n">${value}</td>`);
  return `<tr><td>${escapeHtml(said)}</td><td${look}>${escapeHtml(state)}</td>${numbers.join('')}</tr>`;
}

function turnHead(id: string, turn: TurnView | undefined): string {
  const [, agent = '', number = ''] = /(?<![^:])([^:]+):(\d+)$/.exec(id) ?? [];
  const facts = turn
    ? [turn.status, `${turn.steps} steps`, `${turn.tokens.input} tokens in, ${turn.tokens.output} out`]
    : [];
  const look = turn?.status === 'failed' ? ' class="bad"' : '';
  const words = [`@${agent}, turn ${number}`, ...facts].join(' · ');
  return `<details open><summary${look}>${escapeHtml(words)}</summary>\n`;
}

function eventHtml(event: Event): string {
  const { seq, at, kind, author, to, level, summary } = rowOf(event);
  const receivers = to.length === 0 ? '' : ` → ${to.map((agent) => `@${agent}`).join(' ')}`;
  const who = `<span class="who">${escapeHtml(author)}${escapeHtml(receivers)}</span>`;
  const what = `<span class="kind${level === 'problem' ? ' bad' : ''}">${escapeHtml(kind)}</span>`;
  const when = `<span class="when">${seq} · ${escapeHtml(time(at))}</span>`;
  return `<article id="e${seq}"><header class="line">${who} ${what} ${when}</header>${wordsHtml(event, summary)}</article>\n`;
}

function wordsHtml(event: Event, summary: string): string {
  return forKind(WORDS, event) ?? `${said(summary)}${forKind(DETAILS, event) ?? ''}`;
}

/** Kinds whose words replace the summary. */
const WORDS: ByKind<Exclude<KindAbout<'words'>, DetailedKind | SummarisedKind> | 'error' | 'notice', string> =
  {
    message: ({ body }) => message(body),
    notice: ({ body }) => message(body),
    injection: ({ body }) => formatted(body.content),
    handoff: ({ body }) => formatted(handoffText(body.summary)),
    step: ({ body }) =>
      `${formatted(body.content)}${body.calls.map(({ name, args }) => exact(`${name} ${args}`)).join('')}`,
    'tool.result': ({ body }) => `${said(`${body.name} ${body.outcome}`)}${exact(body.content)}`,
    error: ({ body }) => said(`${body.code}: ${body.message}`),
    'delegation.opened': (event) => formatted(taskText(event)),
    'delegation.ended': ({ body }) => `${said(body.outcome)}${formatted(body.result)}`,
    question: ({ body }) =>
      `${formatted(body.text)}${(body.choices ?? []).map((each) => said(`– ${each}`)).join('')}`,
    'question.answered': ({ body }) => `${said(body.outcome)}${formatted(body.content)}`,
    'approval.requested': ({ body }) => exact(`${body.tool} ${body.args}`),
  };

/** Kinds that show more below the summary. */
const DETAILS = {
  compaction: ({ body }) => exact([body.summary, body.demands, body.listing].join('\n\n').trim()),
  'turn.failed': ({ body }) => exact(body.partial),
  'turn.aborted': ({ body }) => exact(body.partial),
} satisfies Partial<ByKind<EventKind, string>>;
type DetailedKind = keyof typeof DETAILS;

/** Kinds whose summary says everything. A new kind with words is named here or in a table above. */
type SummarisedKind =
  | 'approval.decided'
  | 'membership.changed'
  | 'mode.changed'
  | 'phase.changed'
  | 'run.directive'
  | 'command';

function said(text: string): string {
  return text.trim() === '' ? '' : `<p class="words" dir="auto">${escapeHtml(text)}</p>`;
}

/** The names of attachments, and the text of text attachments, as they are. */
function message(body: MessageBody): string {
  return `${formatted(body.content)}${said(messageText({ ...body, content: '' }))}`;
}

/** With the formatting of its author, as on the page. */
function formatted(text: string): string {
  if (text.trim() === '') return '';
  const parts = formatMarkdown(text);
  return parts === null
    ? said(text)
    : `<div class="formatted" dir="auto">${parts.map(partHtml).join('')}</div>`;
}

/** Elements that have no end. */
const VOID: ReadonlySet<string> = new Set(['br', 'hr', 'input']);

function partHtml(part: Formatted): string {
  if (typeof part === 'string') return escapeHtml(part);
  const { tag, attributes, content } = part;
  const given = Object.entries(attributes).map(([name, value]) =>
    value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`,
  );
  const begin = `<${tag}${given.join('')}>`;
  return VOID.has(tag) ? begin : `${begin}${content.map(partHtml).join('')}</${tag}>`;
}

function exact(text: string): string {
  return text.trim() === '' ? '' : `<pre>${escapeHtml(text)}</pre>`;
}

/** Largest time that a `Date` can hold, ms. */
const LAST_MS = 8.64e15;

function time(at: number): string {
  return Math.abs(at) <= LAST_MS ? new Date(at).toISOString().replace('T', ' ').slice(0, 19) : '';
}

const NAMES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** Control characters except tab and line ends, and marks that reorder a line: untrusted text must not disguise the page. */
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export function escapeHtml(text: string): string {
  return text
    .toWellFormed()
    .replace(UNPRINTABLE, '\ufffd')
    .replace(/[&<>"'`]/g, (mark) => NAMES[mark] ?? '');
}

/** Style of the page, light or dark as the reader prefers. */
const HTML_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8d8d8, #3a3a3a); --dim: light-dark(#5c5c5c, #a6a6a6);
  --bad: light-dark(#b3261e, #ff8a80); --card: light-dark(#f6f6f6, #202020); }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 24px 16px 64px;
  color: light-dark(#1a1a1a, #ececec); background: light-dark(#fff, #161616); }
h1 { font-size: 20px; margin: 0 0 4px; overflow-wrap: anywhere; }
p.about, .when, .kind, .empty { color: var(--dim); }
p.about { margin: 0 0 16px; }
table { border-collapse: collapse; }
body > header table { margin: 0 0 24px; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; }
td.n, th.n { text-align: right; }
article { padding: 8px 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
details { margin: 8px 0; border: 1px solid var(--line); padding: 0 12px; background: var(--card); }
summary { padding: 8px 0; cursor: pointer; font-weight: 600; }
header.line { display: flex; gap: 8px; flex-wrap: wrap; font-size: 13px; }
.who { font-weight: 600; }
.when { margin-left: auto; font-variant-numeric: tabular-nums; }
pre { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0 0; }
.words { white-space: pre-wrap; margin: 4px 0 0; }
.formatted > * { margin: 4px 0; }
.formatted li > p { display: inline; }
.formatted pre { padding: 8px 12px; background: var(--card); border: 1px solid var(--line); direction: ltr; }
.formatted blockquote { padding-inline-start: 12px; border-inline-start: 2px solid var(--line); color: var(--dim); }
.formatted a { color: inherit; }
.words-heading { font-weight: 600; }
.bad { color: var(--bad); }
ol, ul { padding-inline-start: 32px; }
nav li { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--dim); }
/* A long page is laid out where it is looked at. */
article { content-visibility: auto; contain-intrinsic-size: auto 64px; }
/* Paper has all of it, also what the reader has folded. */
@media print {
  article { content-visibility: visible; }
  .line, pre, tr, li { break-inside: avoid; }
  .line { break-after: avoid; }
  details { border: 0; background: none; }
  details::details-content { content-visibility: visible; display: block; }
  nav { display: none; }
}
`;
