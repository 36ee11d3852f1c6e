import { replayCompaction } from '../compaction/replay-compaction.ts';
import { runCalls } from './run-calls.ts';
import { correct } from '../supervision/correct.ts';
import { judge } from '../supervision/judge.ts';
import { showSteered } from '../steering/steer-turn.ts';
import { journalStep, openStep } from '../steering/step-journal.ts';
import type { TurnRun } from './turn-run.ts';

/**
 * Before a turn ends that others may be at work on too: a holder that stood still, and does not know that it is one no
 * more. Its journalled steps are recorded with what is known of their calls, and where they stop the ending is journalled
 * itself, once: who comes there later finds it, and calls nothing that no log would tell of.
 */
export async function sealTurn(run: TurnRun): Promise<void> {
  const { ending } = run;
  run.givenUp = true;
  for (;;) {
    await showSteered(run);
    await replayCompaction(run);
    const entry = (await openStep(run)) ?? (await journalStep(run, { sealed: ending }));
    if ('sealed' in entry) break;
    run.answer = entry;
    if (entry.calls.length > 0) {
      await runCalls(run);
      continue;
    }
    // An answer that was sent back has steps after it.
    const verdict = judge(run);
    if (verdict.kind !== 'corrected') break;
    correct(run, verdict.text);
  }
  // What was found may have been a step too many; the turn ends as it was going to.
  run.ending = ending;
}
