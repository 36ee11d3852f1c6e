import {
  chooseMemories,
  type Memories,
  NO_MEMORIES,
  shownSeqs,
  type View,
  visibleText,
} from '../../context/index.ts';
import type { ActorAddress, Event } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import { readPages } from '../log/read-pages.ts';
import { availableIn } from '../compaction/compaction-policy.ts';

/** Share of what a window leaves that the memories of one turn may take: small windows have small memories. */
const WINDOW_SHARE = 0.05;

/**
 * What was said of a trigger's matter before the agent's summary: found by search, and chosen so that nothing is shown
 * twice. Asked once, when a turn is pinned; from there on it is recorded with the turn.
 */
export async function retrieveMemories(
  deps: EngineDeps,
  {
    address,
    runtime,
    view,
    trigger,
  }: { address: ActorAddress; runtime: AgentRuntime; view: View; trigger: Event },
): Promise<Memories> {
  const { floor } = view;
  const query = matterOf(trigger);
  if (!runtime.retrieval || floor === 0 || query.trim() === '') return NO_MEMORIES;
  const { limit, tokens } = runtime.retrieval;
  const shown = shownSeqs(view);
  const isCovered = (seq: number) => seq <= floor && !shown.has(seq);
  const hits = await deps.memory.search({
    address,
    events: (after) => readPages(deps.store, address, { after, upTo: floor }),
    query,
    limit,
    signal: deps.stopping,
  });
  // What is shown is not made up for: the next best would be further and further from the matter.
  const best = hits.filter(({ seq }) => isCovered(seq));
  const model = await deps.models.get(address.tenant, runtime.profile);
  return chooseMemories({
    hits: best,
    events: await eventsAt(deps, address, best),
    viewer: address.agent,
    isInWindow: (seq) => !isCovered(seq),
    countTokens: deps.countTokens,
    budget: Math.min(tokens, Math.floor(availableIn(runtime, model) * WINDOW_SHARE)),
    limit,
  });
}

/** Of a hand-over what is to be done; what was done is no question. */
function matterOf(trigger: Event): string {
  // What its turn was to answer brought its memories with it.
  if (trigger.kind === 'command') return '';
  if (trigger.kind !== 'handoff') return visibleText(trigger) ?? '';
  const { goal, next, openQuestions } = trigger.body.summary;
  return [goal, next, ...openQuestions].join('\n');
}

async function eventsAt(
  { store }: EngineDeps,
  address: ActorAddress,
  hits: readonly { seq: number }[],
): Promise<ReadonlyMap<number, Event>> {
  const read = hits.map(({ seq }) => store.read(address, { after: seq - 1, upTo: seq, limit: 1 }));
  return new Map((await Promise.all(read)).flat().map((event) => [event.seq, event]));
}
