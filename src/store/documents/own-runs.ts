import type { ActorKey, ActorRow, StepAppend, StepEvent } from '../driver.ts';

/**
 * Events that steps of this process have appended to the own log of an actor, as long as they follow one another. Where they are
 * all that came after what the actor has processed, nothing addresses it, and nobody has to look.
 */
interface OwnRun {
  /** Under another fence another process may have been at it. */
  fence: number;
  from: number;
  upTo: number;
  /** An event of the actor for itself. */
  isAddressed: boolean;
}

export interface OwnRuns {
  /** Of a step that is in the log. */
  note(row: ActorRow, events: readonly StepEvent[], appended: readonly StepAppend[]): void;
  /** Whether all events after `processed` up to this one are of the run, and none of them addresses the actor. */
  reaches(row: ActorRow, seq: number): boolean;
  forget(key: ActorKey): void;
}

/** Bounds the actors that are known: each has a turn under way here. */
const MOST_KNOWN = 10_000;

export function createOwnRuns(): OwnRuns {
  const runs = new Map<string, OwnRun>();

  return {
    note(row, events, appended) {
      const known = runs.get(nameOf(row));
      let run = known?.fence === row.fence ? known : undefined;
      for (const [index, { row: event }] of events.entries()) {
        if (event.conversation !== row.conversation) continue;
        const stored = appended[index];
        if (stored?.kind === 'taken') continue;
        // An event of an earlier attempt may be anywhere.
        if (stored?.kind !== 'appended') return void runs.delete(nameOf(row));
        const { seq } = stored;
        run = run?.upTo === seq - 1 ? run : { fence: row.fence, from: seq, upTo: seq, isAddressed: false };
        run.upTo = seq;
        run.isAddressed ||= event.to.includes(row.agent);
      }
      if (!run || run === known) return;
      if (runs.size >= MOST_KNOWN) runs.clear();
      runs.set(nameOf(row), run);
    },
    reaches(row, seq) {
      const run = runs.get(nameOf(row));
      return (
        run?.fence === row.fence && !run.isAddressed && run.from <= row.processed + 1 && run.upTo === seq
      );
    },
    forget: (key) => void runs.delete(nameOf(key)),
  };
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}
