import { replayRelief } from './relief/replay-relief.ts';
import { runCalls } from './run-calls.ts';
import { journalKey, type JournalEntry, type TurnRun } from './turn-run.ts';

/**
 * Before a turn ends that others may be at work on too: a holder that stood still, and does not know that it is one no
 * more. Its journalled steps are recorded with what is known of their calls, and where they stop the ending is journalled
 * itself, once: who comes there later finds it, and calls nothing that no log would tell of.
 */
export async function sealTurn(run: TurnRun): Promise<void> {
  const { deps, live, turn, ending } = run;
  const seal = JSON.stringify({ sealed: ending } satisfies JournalEntry);
  run.givenUp = true;
  for (;;) {
    await replayRelief(run);
    const key = journalKey(turn.id, run.step);
    const stored = await deps.store.journal(live.address.tenant, key, seal, deps.clock.now());
    const entry = JSON.parse(stored) as JournalEntry;
    if ('sealed' in entry) break;
    run.answer = entry;
    if (entry.calls.length === 0) break;
    await runCalls(run);
  }
  // What was found may have been a step too many; the turn ends as it was going to.
  run.ending = ending;
}
