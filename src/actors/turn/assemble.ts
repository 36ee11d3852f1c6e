import {
  beginTurnSteps,
  buildPrompt,
  foldAhead,
  leastEstimate,
  MAX_REQUEST_BYTES,
} from '../../context/index.ts';
import type { PromptRecord } from '../../events/index.ts';
import { inSlices } from '../engine/in-slices.ts';
import { nameLargest } from '../compaction/turn-compaction.ts';
import { beginStep, replayCompaction } from '../compaction/replay-compaction.ts';
import { compactionReason } from '../compaction/compaction-reason.ts';
import { reachAt } from './reach.ts';
import { steerTurn } from '../steering/steer-turn.ts';
import { promptRulesOf } from './prompt-rules.ts';
import { changed, type Outcome, type TurnRun } from './turn-run.ts';

/** Builds the prompt of the present step from the warm view, and asks for a compaction if it is too long. */
export async function assemble(before: TurnRun): Promise<Outcome> {
  await beginTurnOnce(before);
  const begun = before.compaction.step === before.step ? before : beginStep(before);
  // Nothing was taken into a turn that begins here.
  const steered = begun.step === 0 && !begun.turn.steered ? begun : await steerTurn(begun);
  if (steered.ending.kind === 'aborted') return { event: { type: 'ABORTED' }, run: steered };
  const replayed = steered.resumed ? await replayCompaction(steered) : steered;
  const prompt = build(replayed);
  const run = changed(replayed, { prompt });
  const reason = compactionReason(run, prompt);
  if (reason) {
    const compaction = { ...run.compaction, reason };
    return { event: { type: 'OVER_BUDGET' }, run: changed(run, { compaction }) };
  }
  const fits = prompt.tokens.free >= 0 && run.live.view.bytes <= MAX_REQUEST_BYTES;
  if (fits || mayFit(run, prompt)) return { event: { type: 'PROMPT_READY' }, run };
  const message = nameLargest(run, prompt);
  return {
    event: { type: 'REFUSED' },
    run: changed(run, { ending: { kind: 'failed', code: 'context_overflow', message } }),
  };
}

/** Asked only of a prompt that is refused otherwise: its vendor decides, and says how long it is. */
function mayFit({ live }: TurnRun, { tokens }: PromptRecord): boolean {
  const { estimate, free } = tokens;
  const least = leastEstimate(estimate, live.view.anchor?.reported ?? 0);
  return least <= estimate + free && live.view.bytes <= MAX_REQUEST_BYTES;
}

function build(run: TurnRun): PromptRecord {
  const { deps, live, turn, runtime, baseline, model } = run;
  for (const draft of run.outputs) foldAhead(live.view, draft, deps.countTokens);
  const prompt = buildPrompt({
    view: live.view,
    conversation: live.address.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source: baseline.id },
    step: run.step + 1,
    model,
  });
  return { ...prompt, upTo: reachAt(turn, run.step) };
}

async function beginTurnOnce({ deps, live, turn, meanwhile }: TurnRun): Promise<void> {
  if (live.view.turn?.id === turn.id) return;
  const { id, upTo, inputs, live: items, join, baseline } = turn;
  const input = { id, upTo, inputs, live: items, join, baseline, ...promptRulesOf(turn) };
  live.isBeginning = true;
  try {
    await inSlices(deps.clock, beginTurnSteps(live.view, input), meanwhile.work);
  } finally {
    live.isBeginning = false;
  }
}
