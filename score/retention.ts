import { countTokens } from '../src/context/budget/tokens.ts';
import type { Event } from '../src/events/index.ts';
import { realLogs } from '../test/support/real-logs.ts';
import { CONTENDERS, type Contender, type ContenderName } from './contenders.ts';
import { findProbes, PROBE_KINDS, type ProbeKind } from './probes.ts';

/**
 * Share of the probes of a log that are literally kept when it is shortened without a model. All contenders have the
 * same budget, a share of the log's tokens; an excess is reported, not forgiven.
 */
export interface Retained {
  kept: number;
  of: number;
  /** `kept / of`; 1 if there is nothing to keep. */
  share: number;
}

export interface RetentionRow extends Record<ProbeKind, Retained> {
  /** A file, and how many of its logs count. */
  log: string;
  /** Share of the log's tokens. */
  budget: number;
  contender: ContenderName;
  /** Largest share of the budget used for one log; a value over 1 is a violation of the budget. */
  used: number;
}

export const RETENTION_FILES = [
  'pi-large-session.jsonl',
  'tau/gpt-4o-airline-60.json',
  'tau/tau-retail-few_shot.jsonl',
  'locomo/26.json',
  'locomo/30.json',
  'locomo/41.json',
] as const;
export const RETENTION_BUDGETS = [0.1, 0.2, 0.4] as const;

/** Shorter logs are never compacted. */
const MIN_LOG_TOKENS = 4_000;

export async function scoreRetention(): Promise<RetentionRow[]> {
  const rows: RetentionRow[] = [];
  for (const file of RETENTION_FILES) {
    const logs = (await realLogs(file)).filter((log) => tokensOf(log) >= MIN_LOG_TOKENS);
    rows.push(...scoreLogs(logs.length > 1 ? `${file} (${logs.length} logs)` : file, logs));
  }
  return rows;
}

export function scoreLogs(name: string, logs: readonly (readonly Event[])[]): RetentionRow[] {
  const probed = logs.map((log) => ({ log, tokens: tokensOf(log), probes: findProbes(log) }));
  const contenders = Object.entries(CONTENDERS) as [ContenderName, Contender][];
  return RETENTION_BUDGETS.flatMap((budget) =>
    contenders.map(([contender, shorten]) => {
      const tally = Object.fromEntries(PROBE_KINDS.map((kind) => [kind, { kept: 0, of: 0, share: 1 }]));
      let used = 0;
      for (const { log, tokens, probes } of probed) {
        const room = Math.floor(tokens * budget);
        const text = shorten(log, room);
        used = Math.max(used, countTokens(text) / room);
        for (const kind of PROBE_KINDS) {
          const sum = tally[kind] as Retained;
          sum.of += probes[kind].length;
          sum.kept += probes[kind].filter((probe) => text.includes(probe)).length;
          sum.share = sum.of === 0 ? 1 : sum.kept / sum.of;
        }
      }
      return { log: name, budget, contender, used, ...(tally as Record<ProbeKind, Retained>) };
    }),
  );
}

function tokensOf(log: readonly Event[]): number {
  return log.reduce((sum, { tokens }) => sum + tokens, 0);
}
