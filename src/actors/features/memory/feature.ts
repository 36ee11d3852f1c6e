import type { Feature } from '../../attempt/turn-run.ts';
import { createMemorySearch, type MemorySearch } from './memory-search.ts';
import { storedSegments } from './stored-index.ts';
import {
  chooseMemories,
  isAsking,
  type Memories,
  NO_MEMORIES,
  shownSeqs,
  type View,
  visibleText,
} from '../../../context/index.ts';
import type { ActorAddress, Event } from '../../../events/index.ts';
import type { EngineDeps } from '../../actor/engine-deps.ts';
import type { AgentRuntime } from '../../actor/agent-runtime.ts';
import { type PageSource, readPages } from '../../log/read-log.ts';
import { availableIn } from '../../attempt/model-window.ts';

export const memory: Feature = {
  open({ embedder = null, clock, onWarning, deadlineMs, firstDeadlineMs }) {
    const search = createMemorySearch({
      embedder,
      clock,
      onWarning,
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(firstDeadlineMs !== undefined && { firstDeadlineMs }),
    });
    return {
      memory: {
        retrieve: (deps, turn) => retrieveMemories(deps, search, turn),
        prepare: (deps, address, upTo) => search.prepare(indexRequest(deps, address, upTo)),
        async close() {
          await search[Symbol.asyncDispose]();
        },
      },
    };
  },
};

/** Maximum share of the available tokens for the memories of one turn, so that small windows have few. */
const WINDOW_SHARE = 0.05;

function indexRequest(
  { checkpoints, log, store }: Pick<EngineDeps, 'checkpoints' | 'log' | 'store'>,
  address: ActorAddress,
  upTo: number,
) {
  return {
    address,
    // If the whole log is read, the folds have just read it, and the log has its pages in memory.
    events: (after: number) =>
      after === 0 ? beginning(log, address, upTo) : readPages(store, address, { after, upTo }),
    upTo,
    ...(checkpoints && { segments: storedSegments(checkpoints, address) }),
  };
}

async function* beginning(
  log: PageSource,
  address: ActorAddress,
  upTo: number,
): AsyncIterable<readonly Event[]> {
  for await (const page of readPages(log, address, { after: 0 })) {
    if ((page.at(-1)?.seq ?? 0) <= upTo) yield page;
    else return yield page.filter(({ seq }) => seq <= upTo);
  }
}

/**
 * Retrieves events about the topic of a trigger that the agent's summary covers and the prompt does not show. Called once per
 * turn, when it is pinned; the result is recorded with the turn.
 */
async function retrieveMemories(
  deps: EngineDeps,
  memory: MemorySearch,
  {
    address,
    runtime,
    view,
    trigger,
  }: { address: ActorAddress; runtime: AgentRuntime; view: View; trigger: Event },
): Promise<Memories> {
  const { floor } = view;
  const query = queryOf(trigger);
  if (!runtime.retrieval || query.trim() === '') return NO_MEMORIES;
  const { limit, tokens } = runtime.retrieval;
  const shown = shownSeqs(view);
  const isCovered = (seq: number) => seq <= floor && !shown.has(seq);
  const hits = await memory.search({
    ...indexRequest(deps, address, floor),
    query,
    isAsked: trigger.kind === 'handoff' || isAsking(query),
    limit,
    signal: deps.stopping,
  });
  // Hits that the prompt already shows are not replaced by further ones, which would be less relevant.
  const best = hits.filter(({ seq }) => isCovered(seq));
  const model = await deps.models.get(address.tenant, runtime.profile);
  return chooseMemories({
    hits: best,
    events: await eventsAt(deps, address, best),
    viewer: address.agent,
    isInWindow: (seq) => !isCovered(seq),
    countTokens: deps.countTokens,
    asked: query,
    budget: Math.min(tokens, Math.floor(availableIn(runtime, model) * WINDOW_SHARE)),
    limit,
  });
}

/** The search query for a trigger. For a handoff it is only the goal and the next steps. */
function queryOf(trigger: Event): string {
  // A retried turn already gets the memories with its inputs.
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
