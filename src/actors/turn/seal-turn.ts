import { correct, judge } from './judge-answer.ts';
import { runCalls } from './run-calls.ts';
import { journalStep, openStep } from './step-journal.ts';
import { changed, type TurnRun } from './turn-run.ts';

/**
 * Seals a turn before it ends, because a former holder of the lease may still be running it. The journalled steps become
 * outputs with what is known of their calls. Behind the last one the ending itself is journalled, once. A former holder
 * that gets there finds the ending and makes no call that the log would not show.
 */
export async function sealTurn(before: TurnRun): Promise<TurnRun> {
  const { ending } = before;
  let run = changed(before, { givenUp: true });
  for (;;) {
    const { steering, compaction } = run.deps.features;
    run = steering ? await steering.showSteered(run, 'this') : run;
    run = compaction ? await compaction.replay(run) : run;
    const entry = (await openStep(run)) ?? (await journalStep(run, { sealed: ending }));
    if ('sealed' in entry) break;
    run = changed(run, { answer: entry });
    if (entry.calls.length > 0) {
      ({ run } = await runCalls(run));
      continue;
    }
    // An answer that was sent back is followed by more steps.
    const verdict = judge(run);
    if (verdict.kind !== 'corrected') break;
    ({ run } = correct(run, verdict.drafts));
    run.meanwhile.partial = '';
  }
  // The recorded calls may have changed the ending; the turn keeps the one it was sealed with.
  return changed(run, { ending });
}
