import {
  liveDelta,
  memoryItem,
  modeItems,
  phaseItem,
  rosterNews,
  stateItem,
  statedUnder,
} from '../../context/index.ts';
import { promptRulesOf } from './prompt-rules.ts';
import { TroupeError } from '../../errors.ts';
import {
  ACTOR_VERSION,
  type ActorRecord,
  type Event,
  type Halt,
  isTaskEnd,
  type LiveItems,
  type PinnedTurn,
  turnId,
} from '../../events/index.ts';
import { isUnheard } from '../../machines/membership.ts';
import { isDue, type TaskBook } from '../../machines/task-book.ts';
import { approvedCalls } from '../tasks/ask-people.ts';
import { haltOf, isThreadCancelled, isOfPeople } from '../tasks/cancellation.ts';
import { purposeOf } from './purpose.ts';
import { sessionNamedIn } from '../sessions/adopt-session.ts';
import { copyFolds, isAtRest, isWorthStoring, storeFolds } from '../checkpoints/actor-checkpoint.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { replyAskedBy } from './asked-reply.ts';
import { freezeBaseline } from './freeze-baseline.ts';
import { startedDraft } from './started.ts';
import { presentRuntime } from './write-instructions.ts';
import type { FrozenBaseline, AgentRuntime } from '../engine/agent-runtime.ts';
import { catchUp, type Folded } from '../log/read-view.ts';
import type { LiveActor } from '../engine/registry.ts';
import type { ActiveActor } from './turn-run.ts';
import { unavailableText } from './unavailable.ts';
import { channelItem, personItems, targetItem, timeItem } from './person-facts.ts';
import { contextOf, NO_FACTS, readFacts, type TurnFacts } from './turn-facts.ts';

/**
 * Fixes the inputs of the next turn before any work. The same write counts the first attempt and logs the beginning. Without
 * inputs it settles the log up to the head and releases the lease.
 */
export async function pinTurn(actor: ActiveActor): Promise<PinnedTurn | null> {
  const { deps, lease, live } = actor;
  const { processed, lastTurn } = lease.record;
  const head = await catchUpBeyond(deps, live, { least: Math.max(processed, lease.published), lastTurn });
  if (processed > head) throw beyondHead(lease.record, head);
  const inputs = triggersIn(live, processed);
  const last = inputs.at(-1);
  const keep = deps.checkpoints ? await keepFolds(deps, live, last !== undefined) : null;
  if (!last) {
    const found = lease.record.lost > 0 ? { state: { lost: 0 } } : {};
    const settled = { processed: Math.max(processed, head), owner: '', until: 0, ...found };
    if (lease.isHeld || head > processed) await lease.write(settled);
    keep?.();
    return null;
  }
  const turn = await nextTurn(actor, { inputs, last, head });
  // Written with the version: an older process leaves the turn alone.
  const { conversation } = live.address;
  const begun = await lease.step({
    patch: { state: { turn, machineVersion: ACTOR_VERSION, lost: 0 } },
    events: [{ conversation, draft: startedDraft(actor.runtime, turn), ifTaken: 'spare' }],
    isRepeated: true,
  });
  if (!begun) throw new TroupeError('lease_lost', `another process took over @${live.address.agent}`);
  keep?.();
  return turn;
}

/**
 * Copies the folds of an actor between two turns, if storing them is worth it. The place is read under the lease, so that the
 * conversation is not deleted meanwhile. The result stores the copies: call it once the fence has proved that the folds
 * are this actor's.
 */
async function keepFolds({ checkpoints }: EngineDeps, live: LiveActor, isBusy: boolean): Promise<() => void> {
  if (!checkpoints || !isAtRest(live.view) || !isWorthStoring(live, { checkpoints, isBusy }))
    return () => undefined;
  const copy = copyFolds(live);
  const place = await checkpoints.mark(live.address, live.view.upTo);
  return () => {
    if (place) live.stored = storeFolds(checkpoints, live.address, copy, place);
  };
}

async function nextTurn(
  { deps, lease, runtime: known, live }: ActiveActor,
  { inputs, last, head }: { inputs: readonly Event[]; last: Event; head: number },
): Promise<PinnedTurn> {
  const { address } = live;
  const { baseline: frozen, directions } = live.view;
  const runtime = await presentRuntime(deps, address, known, {
    frozen: frozen?.body ?? null,
    mode: directions.mode,
  });
  const baseline = await freezeBaseline(deps, address, runtime, live);
  const facts = await readFacts(deps, { address, runtime }, live, last);
  const halt = await haltBefore(deps, live, inputs);
  const named = inputs.some(({ context }) => context?.session) ? sessionNamedIn(inputs, address.agent) : null;
  const reply = await replyAskedBy(deps, inputs);
  const approved = halt || live.tasks.tasks.size === 0 ? [] : approvedCalls(live.tasks, inputs);
  return {
    id: turnId(address, lease.record.turnNo + 1),
    upTo: head,
    inputs: inputs.map((event) => event.seq),
    attempt: 1,
    live: liveItems(inputs, live, { runtime, baseline }, facts),
    join: live.tasks.joined.get(address.agent) ?? runtime.profile.join,
    baseline: baseline.id,
    hop: Math.max(...inputs.map((event) => event.hop ?? 0)),
    at: last.at,
    ...promptRulesOf(runtime.profile),
    context: contextOf(baseline, live.view, facts, runtime.tools),
    ...(approved.length > 0 && { approved }),
    ...(halt && { halt }),
    ...(reply && { reply }),
    ...(named && { session: named }),
    ...(live.tasks.thread !== null && inputs.some(isOfPeople) && { byPerson: true }),
  };
}

/** A person who asks in a conversation of its own is always answered. */
async function haltBefore(
  deps: EngineDeps,
  { address, tasks }: LiveActor,
  inputs: readonly Event[],
): Promise<Halt | null> {
  const isInThread = tasks.thread !== null;
  if (!isInThread && !tasks.off && inputs.some(({ author }) => author.kind === 'user')) return null;
  const isCancelled = isInThread && (await isThreadCancelled(deps.store, address.tenant, tasks));
  return haltOf(deps, tasks, inputs, isCancelled);
}

/**
 * Reads on from the store where the log in memory ends before the actor's last turn. If another process published that
 * ending while the agent was paused, no seq in the record says how far to read, so the last turn's id is compared too.
 */
async function catchUpBeyond(
  deps: EngineDeps,
  live: LiveActor,
  { least, lastTurn }: { least: number; lastTurn: ActorRecord['lastTurn'] },
): Promise<number> {
  const head = await catchUp(deps.log, live.address, live);
  const isBehind = head < least || (lastTurn !== null && live.view.lastTurn !== lastTurn);
  return isBehind ? catchUp(deps.store, live.address, live) : head;
}

/** With such a record, every new message would count as settled and the agent would never answer again. */
function beyondHead({ agent, processed }: ActorRecord, head: number): TroupeError {
  return new TroupeError(
    'actor_corrupt',
    `the record of @${agent} has settled the log up to ${processed}, but it ends at ${head}`,
    { agent, processed, head },
  );
}

/**
 * The addressed events that are not settled, oldest first. An event with text that addresses the agent is pending until
 * its turn. The end of a task counts once its group is due, however old it is.
 */
export function triggersIn(
  { view, tasks }: { view: Pick<Folded['view'], 'agent' | 'pending'>; tasks: TaskBook },
  processed: number,
): Event[] {
  return view.pending.filter((event) => {
    if (!event.to.includes(view.agent) || isUnheard(tasks, view.agent, event)) return false;
    return isTaskEnd(event) && tasks.ended.has(event.seq) ? isDue(tasks, event.seq) : event.seq > processed;
  });
}

/** The live items at the start of a turn, changes only. The time is that of the trigger, never of the clock. */
export function liveItems(
  inputs: readonly Event[],
  { view, tasks }: Folded,
  { runtime, baseline }: { runtime: AgentRuntime; baseline: FrozenBaseline },
  { directive, fragments, memories, workItems, person }: TurnFacts = NO_FACTS,
): LiveItems {
  const stated = statedUnder(view.stated, baseline.id);
  const trigger = inputs.at(-1);
  if (!trigger) return {};
  const roster = rosterNews(baseline.body, runtime.baseline, stated.items['roster']);
  const facts: LiveItems = {
    time: timeItem(trigger.at, person),
    task: purposeOf(trigger, tasks),
    ...(person && personItems(person, view, stated)),
    ...modeItems(view.directions.mode, directive),
    ...phaseItem(view.directions.phase, runtime.orchestrates),
    ...channelItem(trigger, runtime.channels, stated),
    ...stateItem('unavailable', unavailableText(runtime, tasks), stated),
    ...(roster !== null && { roster }),
  };
  for (const [name, text] of [...workItems, ...fragments])
    Object.assign(facts, stateItem(name, text, stated));
  return {
    ...liveDelta(facts, stated),
    ...targetItem(inputs, view),
    ...(memories.seqs.length > 0 && memoryItem(memories)),
  };
}
