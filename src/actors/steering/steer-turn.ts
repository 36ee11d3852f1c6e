import type { EventDraft, PinnedTurn, TurnSteeredBody } from '../../events/index.ts';
import { catchUp } from '../log/read-view.ts';
import { CALLED_OFF, isOfPeople, isTurnCalledOff } from '../tasks/called-off.ts';
import { ownDraft, type MutableTurnRun, type TurnRun } from '../turn/turn-run.ts';
import { isInterrupted, lookBeyond } from './look-beyond.ts';
import { reachOf } from './reach.ts';
import { closeStep, openStep } from './step-journal.ts';

/**
 * Between two steps of a turn: what came meanwhile and is to steer it becomes an input of the turn, or ends it.
 *  T1  What is taken in is in the pinned turn, by one compare-and-set, before anything is rendered from it: after a crash
 *      it is rendered again at the same step, and nobody is given it twice.
 *  T2  All that waits is taken in up to the last event that steers, oldest first: what a turn covers rises.
 *  T3  A step takes in once, and never after it was sent or answered.
 */
export async function steerTurn(run: MutableTurnRun): Promise<'goes on' | 'ends'> {
  await showSteered(run);
  const { steer, step, turn } = run;
  if (step === 0 || steer.step === step) return 'goes on';
  steer.step = step;
  if (run.resumed && (await openStep(run))) return 'goes on';
  if (turn.steered?.some((each) => each.step >= step)) return 'goes on';
  const beyond = await lookBeyond(run);
  if (beyond.kind === 'nothing') return 'goes on';
  if (beyond.kind === 'interrupt') {
    run.ending = { kind: 'aborted', by: 'interrupted' };
    return 'ends';
  }
  const { inputs } = beyond;
  if (run.resumed && (await isSent(run))) {
    steer.seen = reachOf(turn);
    return 'goes on';
  }
  if (run.resumed && !(await closeStep(run))) {
    // Answered meanwhile by a holder that is one no more: the next step looks at the same again.
    steer.seen = reachOf(turn);
    return 'goes on';
  }
  const last = inputs.at(-1)?.seq ?? 0;
  const taken = { step, upTo: Math.max(last, reachOf(turn)), inputs: inputs.map(({ seq }) => seq) };
  const next: PinnedTurn = {
    ...turn,
    hop: Math.max(turn.hop, ...inputs.map(({ hop = 0 }) => hop)),
    steered: [...(turn.steered ?? []), taken],
    ...(run.live.tasks.thread !== null && inputs.some(isOfPeople) && { byPerson: true }),
  };
  await run.lease.write({ state: { turn: next } });
  run.turn = next;
  await showSteered(run);
  return 'goes on';
}

/** Whether the prompt of this step is known to have been sent: who asks again asks the same. */
async function isSent({ deps, live, turn, step }: TurnRun): Promise<boolean> {
  return (await deps.store.readReceipt(live.address.tenant, turn.id, step + 1)) !== null;
}

/** What was taken in for the present step becomes an output of the turn, and the view reaches it. */
export async function showSteered(run: MutableTurnRun): Promise<void> {
  const { deps, live } = run;
  for (const taken of missing(run)) {
    if (taken.step !== run.step) continue;
    await catchUp(deps.log, live.address, live, taken.upTo);
    run.outputs = [...run.outputs, draftOf(run, taken)];
  }
}

/** A turn that ends without coming to some of its steps again has been given what they took in all the same. */
export async function tellSteered(run: MutableTurnRun): Promise<void> {
  const { deps, live, turn } = run;
  if (!turn.steered) return;
  await catchUp(deps.log, live.address, live, reachOf(turn));
  for (const taken of missing(run)) run.outputs = [...run.outputs, draftOf(run, taken)];
}

/** Who ends a turn that was asked to stop: somebody by a command, what came for its agent, or the end of what it is for. */
export async function stoppedBy(run: TurnRun): Promise<string> {
  const { ending } = run;
  if (ending.kind === 'aborted' && (ending.by === 'interrupted' || ending.by === CALLED_OFF))
    return ending.by;
  if (await isInterrupted(run)) return 'interrupted';
  return (await isTurnCalledOff(run)) ? CALLED_OFF : 'command';
}

function missing(run: TurnRun): TurnSteeredBody[] {
  const { steered } = run.turn;
  if (!steered) return [];
  const told = new Set<string>(run.outputs.map(({ id }) => id));
  return steered.filter((taken) => !told.has(draftOf(run, taken).id));
}

function draftOf(run: TurnRun, taken: TurnSteeredBody): EventDraft {
  return { ...ownDraft(run, `steered:${taken.step}`), kind: 'turn.steered', body: taken };
}
