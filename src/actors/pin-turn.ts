import {
  liveDelta,
  memoryItem,
  minute,
  modeItems,
  rosterNews,
  sayItem,
  toldUnder,
  type View,
} from '../context/index.ts';
import { TroupeError } from '../errors.ts';
import { type ActorRecord, type Event, type LiveItems, type PinnedTurn, turnId } from '../events/index.ts';
import type { EngineDeps } from './engine-deps.ts';
import { freezeBaseline } from './freeze-baseline.ts';
import type { Lease } from './lease.ts';
import type { FrozenBaseline, Member } from './member.ts';
import { catchUp } from './read-view.ts';
import type { LiveActor } from './registry.ts';
import { contextOf, NO_FACTS, readFacts, type TurnFacts } from './turn-facts.ts';

/**
 * Fixes the inputs of the next turn before any work, in one compare-and-set that also counts the first attempt and
 * drops the outbox, which is in the log by now. With nothing to do, the same write settles the log up to the head and
 * gives the lease back.
 */
export async function pinTurn(
  deps: EngineDeps,
  lease: Lease,
  member: Member,
  live: LiveActor,
): Promise<PinnedTurn | null> {
  const address = live.address;
  const head = await catchUp(deps.log, address, live.view);
  const { processed, turnNo } = lease.record;
  // What this process remembers of the log may end earlier than what another has settled; the store's head may not.
  if (processed > head && processed > (await deps.store.head(address))) throw beyondHead(lease.record, head);
  const inputs = triggersIn(live.view, processed);
  const last = inputs.at(-1);
  if (!last) {
    const outbox = lease.record.outbox.length > 0 ? { state: { outbox: [] } } : {};
    await lease.write({ processed: Math.max(processed, head), owner: '', until: 0, ...outbox });
    return null;
  }
  const baseline = await freezeBaseline(deps, address, member, live);
  const facts = await readFacts(deps, address, member, live.view, last);
  const turn: PinnedTurn = {
    id: turnId(address, turnNo + 1),
    upTo: head,
    inputs: inputs.map((event) => event.seq),
    attempt: 1,
    live: liveItems(last, live.view, member, baseline, facts),
    join: member.profile.join,
    baseline: baseline.id,
    hop: Math.max(...inputs.map((event) => event.hop ?? 0)),
    at: last.at,
    context: contextOf(baseline, live.view, facts),
  };
  await lease.write({ state: { turn, outbox: [] } });
  return turn;
}

/** Such a record would take every message for settled and never answer again. */
function beyondHead({ agent, processed }: ActorRecord, head: number): TroupeError {
  return new TroupeError(
    'actor_corrupt',
    `the record of @${agent} has settled the log up to ${processed}, but it ends at ${head}`,
    { agent, processed, head },
  );
}

/** The addressed events not yet settled, oldest first. Whatever addresses the agent and has words is pending until its turn. */
export function triggersIn(view: View, processed: number): Event[] {
  return view.pending.filter((event) => event.seq > processed && event.to.includes(view.agent));
}

/** What the agent should know at the start of this turn; only changes are said. Time is the trigger's, never a clock's. */
export function liveItems(
  trigger: Event,
  view: View,
  member: Member,
  baseline: FrozenBaseline,
  { directive, fragments, memories }: TurnFacts = NO_FACTS,
): LiveItems {
  const told = toldUnder(view.told, baseline.id);
  const roster = rosterNews(baseline.body, member.baseline, told.items['roster']);
  const task =
    trigger.kind === 'handoff'
      ? `@${trigger.author.id} handed over to you: take it from the summary above and answer the conversation`
      : 'answer the last message';
  const facts: LiveItems = {
    time: minute(trigger.at),
    task,
    ...modeItems(view.mode, directive),
    ...(roster !== null && { roster }),
  };
  for (const [name, text] of fragments) Object.assign(facts, sayItem(name, text, told));
  return { ...liveDelta(facts, told), ...memoryItem(memories) };
}
