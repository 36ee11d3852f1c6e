import type { ToolProgress } from '../../events/index.ts';
import { type CompactionView, MAX_SUMMARY } from './model.ts';

/** The beginning of a text as one line. */
export function oneLine(text: string, length: number = MAX_SUMMARY): string {
  const head = text.slice(0, length * LOOK_AHEAD);
  const line = head.replace(/\s+/g, ' ').trim();
  if (line.length <= length && head.length === text.length) return line;
  return `${line.slice(0, length - 1).toWellFormed()}…`;
}

/** Multiple of the line length that is read, so that a very long text costs little. */
const LOOK_AHEAD = 4;

/** 1, 2, 3, 7 as `1–3, 7`. */
export function ranges(seqs: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = parts.at(-1);
    if (last && seq === last.to + 1) last.to = seq;
    else parts.push({ from: seq, to: seq });
  }
  return parts.map(({ from, to }) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}

/** Such as `3 of 8, copying`. */
export function progressInWords({ text, done, total }: ToolProgress): string {
  const count = done === undefined ? '' : total === undefined ? `${done}` : `${done} of ${total}`;
  return [count, text ?? ''].filter((part) => part !== '').join(', ');
}

/** What a compaction does. */
export const COMPACTION_PHASES: Record<CompactionView['phase'], string> = {
  started: 'making room',
  pruned: 'tool results pruned',
  summarising: 'summarising',
  done: 'made room',
  failed: 'could not make room',
};

/** Why there is one. */
export const COMPACTION_REASONS: Record<CompactionView['reason'], string> = {
  over_budget: 'the prompt was above its trigger',
  overflow: 'the provider refused the request as too long',
  cold_cache: 'the cache had gone cold, so that a shorter prompt costs less',
  manual: 'a person asked for it',
  each_turn: 'the agent begins its turns without old tool results',
  join: 'an agent joined and got a summary of what came before',
};

/** How it made room. */
export const COMPACTION_STRATEGIES: Record<NonNullable<CompactionView['strategy']>, string> = {
  prune: 'old tool results replaced by placeholders',
  adopt: 'a summary that another agent had made was adopted',
  summary: 'a model wrote a summary',
  extraction: 'quotes and facts were chosen without a model',
  trim: 'long messages were shortened',
};

/** Such as `1 step`, `2 steps`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
