import { readFileSync } from 'node:fs';
import path from 'node:path';
import { countTokens } from '../src/context/budget/tokens.ts';
import {
  type CompactionBase,
  DEFAULT_POLICY,
  extractCompaction,
  summaryCompaction,
} from '../src/context/index.ts';
import { renderCompaction } from '../src/context/compaction/apply.ts';
import { peopleOf } from '../src/context/text/people.ts';
import type { AgentId, CompactionBody, Event } from '../src/events/index.ts';
import { DATA } from '../test/support/real-logs.ts';
import { type Fact, factsAt, says } from './facts.ts';

/** A place in a log at which everything before is made short. */
export interface Point {
  log: readonly Event[];
  upTo: number;
  /** What a model wrote there, where the log has it. */
  recorded: string | null;
  /** Tokens of that, or of what a model would write. */
  size: number;
}

const SIZE = { least: 300, most: 1_000, share: 1 / 8 };

/** The places where a model has summarised the session, otherwise the middle and four fifths of a log. */
export function pointsOf(file: string, log: readonly Event[]): Point[] {
  const recorded = recordedIn(file, log);
  if (recorded.length > 0) return recorded;
  return [1 / 2, 4 / 5]
    .map((share) => Math.floor(log.length * share))
    .map((upTo) => {
      const tokens = log.slice(0, upTo).reduce((sum, event) => sum + event.tokens, 0);
      return {
        log,
        upTo,
        recorded: null,
        size: Math.round(Math.min(SIZE.most, Math.max(SIZE.least, tokens * SIZE.share))),
      };
    });
}

/** The summaries of a session's own compactions, as `compaction` lines hold them. Each message line is one event. */
function recordedIn(file: string, log: readonly Event[]): Point[] {
  if (!file.endsWith('.jsonl')) return [];
  const lines = readFileSync(path.resolve(DATA, file), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const points: Point[] = [];
  let upTo = 0;
  for (const line of lines) {
    const entry = JSON.parse(line) as { type?: unknown; summary?: unknown };
    if (entry.type === 'message') upTo += 1;
    if (entry.type !== 'compaction' || typeof entry.summary !== 'string' || upTo > log.length) continue;
    points.push({ log, upTo, recorded: entry.summary, size: countTokens(entry.summary) });
  }
  return points;
}

/** Ways to say what came before a point, within so many tokens. */
export const WAYS = [
  'model',
  'extraction',
  'extraction at 2x',
  'model and lists at 2x',
  'model and people at 2x',
] as const;
export type Way = (typeof WAYS)[number];

export function textAt(point: Point, way: Way): string | null {
  const { recorded, size } = point;
  switch (way) {
    case 'model':
      return recorded;
    case 'extraction':
      return rendered(extractCompaction(baseOf(point, size)));
    case 'extraction at 2x':
      return rendered(extractCompaction(baseOf(point, 2 * size)));
    case 'model and lists at 2x':
      return recorded === null
        ? null
        : rendered(summaryCompaction({ ...baseOf(point, 2 * size), text: recorded }));
    case 'model and people at 2x': {
      if (recorded === null) return null;
      // Without the lists and the digest: the summary, and people's words only.
      const people = point.log.filter(({ author }) => author.kind === 'user');
      const base = { ...baseOf(point, size), events: people.filter(({ seq }) => seq <= point.upTo) };
      return `${recorded}\n${rendered(extractCompaction(base)) ?? ''}`;
    }
  }
}

function rendered(body: CompactionBody | null): string | null {
  return body && renderCompaction(body, 'score');
}

function baseOf({ log, upTo }: Point, budget: number): CompactionBase {
  const events = log.slice(0, upTo);
  return {
    number: 1,
    upTo,
    reason: 'over_budget',
    by: 'assistant' as AgentId,
    before: Infinity,
    budget,
    events,
    previous: null,
    policy: DEFAULT_POLICY,
    secret: 'score',
    people: peopleOf(events),
    count: countTokens,
  };
}

/** The facts of a point, and which of them each way keeps. */
export function keptAt(point: Point): { facts: Fact[]; kept: Map<Way, boolean[]> } {
  const facts = factsAt(point.log, point.upTo);
  const kept = new Map<Way, boolean[]>();
  for (const way of WAYS) {
    const text = textAt(point, way);
    if (text !== null)
      kept.set(
        way,
        facts.map((fact) => says(text, fact)),
      );
  }
  return { facts, kept };
}
