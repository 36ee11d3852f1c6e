import { countTokens } from '../src/context/budget/tokens.ts';
import { eventText } from '../src/context/text/event-text.ts';
import { DEFAULT_POLICY, extractCompaction } from '../src/context/index.ts';
import { renderCompaction } from '../src/context/compaction/apply.ts';
import { peopleOf } from '../src/context/text/people.ts';
import type { AgentId, Event } from '../src/events/index.ts';

/** A way to shorten a log: returns the text that replaces it in a prompt, within so many tokens. */
export type Contender = (log: readonly Event[], budget: number) => string;

const CUT_HEAD = 600;
const CUT_TAIL = 200;

export const CONTENDERS = {
  troupe: extraction,
  'head-drop': (log, budget) => newest(log.map(lineOf), budget, 'stop'),
  'recency, shortened': (log, budget) =>
    newest(
      log.map((event) => cut(lineOf(event))),
      budget,
      'stop',
    ),
  'user only': (log, budget) =>
    newest(log.filter(({ author }) => author.kind === 'user').map(lineOf), budget, 'skip'),
} as const satisfies Record<string, Contender>;
export type ContenderName = keyof typeof CONTENDERS;

/** A compaction without a model, as an agent would be sent it. */
function extraction(log: readonly Event[], budget: number): string {
  const body = extractCompaction({
    number: 1,
    upTo: log.at(-1)?.seq ?? 1,
    reason: 'over_budget',
    by: 'assistant' as AgentId,
    before: Infinity,
    budget,
    events: log,
    previous: null,
    policy: DEFAULT_POLICY,
    secret: 'score',
    people: peopleOf(log),
    count: countTokens,
  });
  return body ? renderCompaction(body, 'score') : '';
}

function lineOf(event: Event): string {
  const text = eventText(event);
  return text === '' ? '' : `[${event.author.name}] ${text}`;
}

function cut(line: string): string {
  if (line.length <= CUT_HEAD + CUT_TAIL) return line;
  return `${line.slice(0, CUT_HEAD)}\n[...]\n${line.slice(-CUT_TAIL)}`;
}

/** From the newest line backwards; at the first that does not fit it stops or skips. */
function newest(lines: readonly string[], budget: number, atLimit: 'stop' | 'skip'): string {
  const kept: string[] = [];
  let left = budget;
  for (const line of lines.filter((text) => text !== '').toReversed()) {
    const tokens = countTokens(line) + 1;
    if (tokens <= left) {
      left -= tokens;
      kept.unshift(line);
    } else if (atLimit === 'stop') break;
  }
  return kept.join('\n');
}
