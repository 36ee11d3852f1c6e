import { type Feature, changed, ownDraft, type TurnRun } from '../../attempt/turn-run.ts';
import {
  type Event,
  type EventDraft,
  type PinnedTurn,
  type TurnSteeredBody,
  type ActorAddress,
  type BusyPolicy,
  isTaskEnd,
  type TurnId,
} from '../../../events/index.ts';
import { catchUp } from '../../log/read-log.ts';
import { isOfPeople } from '../../tasks/task-ends.ts';
import { reachOf, isFor, readUpTo, waitingAfter } from '../../attempt/pinned-turn.ts';
import { closeStep, openStep } from '../../turn/step-journal.ts';
import type { AgentRuntime } from '../../actor/agent-runtime.ts';
import { isUnheard } from '../../../machines/membership.ts';
import type { EngineDeps } from '../../actor/engine-deps.ts';
import { TroupeError } from '../../../base/errors.ts';
import type { ConversationKey } from '../../../store/store.ts';

export const steering: Feature = {
  open: () => ({
    steering: {
      steer: steerTurn,
      showSteered: (run, steps) => (steps === 'all' ? showAllSteered(run) : showSteered(run)),
      isInterrupted,
      turnToInterrupt,
      refuseBusy,
    },
  }),
};

/**
 * Takes events into a running turn between two of its steps, or ends the turn if one of them interrupts it.
 *  T1  Taken events are written to the pinned turn, by one compare-and-set, before they are rendered. So after a crash they
 *      are rendered again at the same step, and never twice.
 *  T2  All waiting events up to the last one that steers are taken, oldest first, so the inputs of a turn only grow.
 *  T3  A step takes events once, and never after it was sent or answered.
 */
async function steerTurn(before: TurnRun): Promise<TurnRun> {
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

/** Whether the step was neither sent nor answered. If it was, the next step finds the same events. */
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

/** Whether the prompt of this step is known to have been sent, so that a retry must send the same. */
async function isSent({ deps, live, turn, step }: TurnRun): Promise<boolean> {
  return (await deps.store.readReceipt(live.address.tenant, turn.id, step + 1)) !== null;
}

/** Adds the events that the present step took to the view and to the outputs of the turn. */
async function showSteered(run: TurnRun): Promise<TurnRun> {
  const { deps, live } = run;
  const shown = missing(run).filter(({ step }) => step === run.step);
  for (const { upTo } of shown) await catchUp(deps.log, live.address, live, upTo);
  return withSteered(run, shown);
}

/** `showSteered` for all steps, because a resumed turn may end before it reaches a step that took events. */
async function showAllSteered(run: TurnRun): Promise<TurnRun> {
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

type Beyond =
  | { kind: 'nothing' }
  | { kind: 'interrupt' }
  /** Oldest first, never empty. */
  | { kind: 'steer'; inputs: Event[] };

const NOTHING: Beyond = { kind: 'nothing' };
/** Kinds that need a new turn, because a running turn cannot take them in. */
const BEGINS_A_TURN: readonly Event['kind'][] = ['handoff', 'delegation.opened', 'command'];

/**
 * Finds events after the inputs of a running turn that must not wait for the next turn. Folds nothing, so the next turn finds
 * the events that are not taken. Without new events it costs one read of the head.
 */
async function lookBeyond(run: TurnRun): Promise<{ seen: number; found: Beyond }> {
  const { deps, live, steer } = run;
  const head = await deps.store.head(live.address);
  if (head <= steer.seen) return { seen: steer.seen, found: NOTHING };
  return { seen: head, found: await findBeyond(run, head) };
}

async function findBeyond(run: TurnRun, head: number): Promise<Beyond> {
  const { live, turn, runtime, steer } = run;
  const { agent } = live.address;
  const fresh = await readUpTo(run, steer.seen, head);
  if (!fresh.some((event) => isFor(agent, event) && cannotWait(event, runtime))) return NOTHING;
  const reach = reachOf(turn);
  const waiting = waitingAfter(run, steer.seen === reach ? fresh : await readUpTo(run, reach, head));
  if (waiting.some((event) => busyPolicyOf(event, runtime) === 'interrupt')) return { kind: 'interrupt' };
  const barrier = waiting.findIndex(({ kind }) => BEGINS_A_TURN.includes(kind));
  const open = barrier === -1 ? waiting : waiting.slice(0, barrier);
  const last = open.findLastIndex((event) => busyPolicyOf(event, runtime) === 'steer');
  return last === -1 ? NOTHING : { kind: 'steer', inputs: open.slice(0, last + 1) };
}

async function isInterrupted(run: TurnRun): Promise<boolean> {
  const { deps, live, turn, runtime } = run;
  const head = await deps.store.head(live.address);
  const since = await readUpTo(run, reachOf(turn), head);
  return waitingAfter(run, since).some((event) => busyPolicyOf(event, runtime) === 'interrupt');
}

function cannotWait(event: Event, runtime: AgentRuntime): boolean {
  const policy = busyPolicyOf(event, runtime);
  return policy === 'steer' || policy === 'interrupt';
}

/**
 * The policy for an event whose agent is at work: that of its author, otherwise the agent's setting. The end of a task for
 * which the agent waits steers the running turn. The cancellation of the agent's own task interrupts it.
 */
function busyPolicyOf(event: Event | EventDraft, runtime: Pick<AgentRuntime, 'whileBusy'>): BusyPolicy {
  if (isCancellation(event)) return 'interrupt';
  // An approved call is made at the start of a turn, and a retry command requests a new turn.
  if (event.kind === 'approval.decided' || event.kind === 'command') return 'queue';
  if (isTaskEnd(event)) return 'steer';
  return event.whileBusy ?? runtime.whileBusy;
}

/** Whether an event tells an assignee, in the thread of its task, that the task is cancelled. */
function isCancellation({ kind, id }: Event | EventDraft): boolean {
  return kind === 'delegation.ended' && id.endsWith(':cancel');
}

/**
 * The running turn that an event interrupts. A hint, like wakes: a turn that is pinned at this moment checks for interrupting
 * events itself before its next step.
 */
async function turnToInterrupt(
  { store, agents, registry }: Pick<EngineDeps, 'store' | 'agents' | 'registry'>,
  address: ActorAddress,
  event: Event,
): Promise<TurnId | null> {
  const runtime = agents.get(address.agent);
  if (!runtime || busyPolicyOf(event, runtime) !== 'interrupt') return null;
  const live = registry.find(address);
  if (live && isUnheard(live.tasks, address.agent, event)) return null;
  const turn = (await store.readActor(address))?.turn;
  return turn && reachOf(turn) < event.seq ? turn.id : null;
}

/** Throws `agent_busy` if an addressed agent is at work and rejects messages while it is. Accepts a stored message again. */
async function refuseBusy(
  { store, agents }: Pick<EngineDeps, 'store' | 'agents'>,
  log: ConversationKey,
  draft: EventDraft,
): Promise<void> {
  for (const agent of draft.to) {
    const runtime = agents.get(agent);
    if (!runtime || busyPolicyOf(draft, runtime) !== 'reject') continue;
    const turn = (await store.readActor({ ...log, agent }))?.turn;
    if (!turn || (await store.readById(log, draft.id))) continue;
    throw new TroupeError(
      'agent_busy',
      `@${agent} is at work (turn ${turn.id}) and accepts no messages meanwhile; nothing was stored. Send the message again after the turn, or with whileBusy "queue", "steer" or "interrupt".`,
      { agent, turn: turn.id },
    );
  }
}
