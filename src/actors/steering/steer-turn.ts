import type { Event, EventDraft, PinnedTurn, TurnSteeredBody } from '../../events/index.ts';
import { catchUp } from '../log/read-view.ts';
import { isOfPeople } from '../tasks/cancellation.ts';
import { changed, ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { lookBeyond } from './look-beyond.ts';
import { reachOf } from '../turn/pinned-turn.ts';
import { closeStep, openStep } from '../turn/step-journal.ts';

/**
 * Takes events into a running turn, between two of its steps, or ends the turn if one of them interrupts it.
 *  T1  Taken events are written to the pinned turn, by one compare-and-set, before they are rendered. After a crash they
 *      are rendered again at the same step, and never twice.
 *  T2  All waiting events up to the last one that steers are taken, oldest first, so the inputs of a turn only grow.
 *  T3  A step takes events once, and never after it was sent or answered.
 */
export async function steerTurn(before: TurnRun): Promise<TurnRun> {
  const shown = await showSteered(before);
  const { step, turn } = shown;
  if (step === 0 || shown.steer.step === step) return shown;
  const run = changed(shown, { steer: { ...shown.steer, step } });
  if (run.resumed && (await openStep(run))) return run;
  if (turn.steered?.some((each) => each.step >= step)) return run;
  const { seen, found } = await lookBeyond(run);
  const looked = changed(run, { steer: { step, seen } });
  if (found.kind === 'nothing') return looked;
  if (found.kind === 'interrupt') return changed(looked, { ending: { kind: 'aborted', by: 'interrupted' } });
  if (run.resumed && !(await mayTakeIn(run))) return changed(run, { steer: { step, seen: reachOf(turn) } });
  return takeIn(looked, found.inputs);
}

/** Whether the step was neither sent nor answered. Otherwise the next step finds the same events again. */
async function mayTakeIn(run: TurnRun): Promise<boolean> {
  return !(await isSent(run)) && (await closeStep(run));
}

async function takeIn(run: TurnRun, inputs: readonly Event[]): Promise<TurnRun> {
  const { step, turn } = run;
  const last = inputs.at(-1)?.seq ?? 0;
  const taken = { step, upTo: Math.max(last, reachOf(turn)), inputs: inputs.map(({ seq }) => seq) };
  const next: PinnedTurn = {
    ...turn,
    hop: Math.max(turn.hop, ...inputs.map(({ hop = 0 }) => hop)),
    steered: [...(turn.steered ?? []), taken],
    ...(run.live.tasks.thread !== null && inputs.some(isOfPeople) && { byPerson: true }),
  };
  await run.lease.write({ state: { turn: next } });
  run.meanwhile.pinned = next;
  return showSteered(changed(run, { turn: next }));
}

/** Whether the prompt of this step is known to have been sent: a retry must then send the same. */
async function isSent({ deps, live, turn, step }: TurnRun): Promise<boolean> {
  return (await deps.store.readReceipt(live.address.tenant, turn.id, step + 1)) !== null;
}

/** Adds the events that the present step took to the view and to the outputs of the turn. */
export async function showSteered(run: TurnRun): Promise<TurnRun> {
  const { deps, live } = run;
  const shown = missing(run).filter(({ step }) => step === run.step);
  for (const { upTo } of shown) await catchUp(deps.log, live.address, live, upTo);
  return withSteered(run, shown);
}

/** `showSteered` for all steps: a resumed turn may end before it reaches a step that took events. */
export async function showAllSteered(run: TurnRun): Promise<TurnRun> {
  const { deps, live, turn } = run;
  if (!turn.steered) return run;
  await catchUp(deps.log, live.address, live, reachOf(turn));
  return withSteered(run, missing(run));
}

function withSteered(run: TurnRun, taken: readonly TurnSteeredBody[]): TurnRun {
  if (taken.length === 0) return run;
  return changed(run, {}, { outputs: taken.map((each) => draftOf(run, each)) });
}

function missing(run: TurnRun): TurnSteeredBody[] {
  const { steered } = run.turn;
  if (!steered) return [];
  const shown = new Set<string>(run.outputs.map(({ id }) => id));
  return steered.filter((taken) => !shown.has(draftOf(run, taken).id));
}

function draftOf(run: TurnRun, taken: TurnSteeredBody): EventDraft {
  return { ...ownDraft(run, `steered:${taken.step}`), kind: 'turn.steered', body: taken };
}
