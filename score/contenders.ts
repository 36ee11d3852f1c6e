import { countTokens } from '../src/context/tokens.ts';
import { eventText } from '../src/context/event-text.ts';
import { collectFacts } from '../src/context/extract/collect-facts.ts';
import { extractKeyMessages } from '../src/context/extract/key-messages.ts';
import { renderFacts } from '../src/context/extract/render-facts.ts';
import { shareBudget } from '../src/context/compaction/compose.ts';
import { fence } from '../src/context/fence.ts';
import { fenceKey } from '../src/context/hash.ts';
import type { Event } from '../src/events/index.ts';

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

/** A compaction without a model: quotes in their fences, then the facts in the remaining space. */
function extraction(log: readonly Event[], budget: number): string {
  const facts = collectFacts(log, null);
  const room = shareBudget(facts, budget, countTokens);
  const { quotes } = extractKeyMessages({
    events: log,
    previous: null,
    budget: room.quotes,
    count: countTokens,
  });
  const said = quotes
    .map(({ seq, speaker, text, cut: isCut }) => {
      const head = `[${speaker}] #${seq}${isCut ? ' (shortened)' : ''}`;
      return `${head}\n${fence('msg', fenceKey('score', `${seq}`), text)}`;
    })
    .join('\n');
  return `${said}\n${renderFacts(facts, budget - countTokens(said) - 1, countTokens, { shown: said })}`;
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
