import type { ConversationId, Event } from '../../events/index.ts';
import { foldArrow, foldConversation, foldTalk } from './fold-talk.ts';
import { foldLink } from './fold-link.ts';
import { type Draft, draftOf, NO_TOKENS, ownTotals } from './draft.ts';
import { foldAgents, settleConditions } from './fold-agent.ts';
import { foldCompaction } from './fold-compaction.ts';
import { foldTask } from './fold-task.ts';
import { foldTurn } from './fold-turn.ts';
import type { Projection } from './model.ts';

export function newProjection(conversation: string): Projection {
  return {
    conversation: conversation as ConversationId,
    seq: 0,
    at: 0,
    began: 0,
    mode: 'agent',
    phase: null,
    archived: false,
    agents: {},
    turns: [],
    arrows: [],
    links: [],
    opening: null,
    closing: null,
    people: [],
    talk: [],
    tasks: [],
    compactions: [],
    origin: null,
    forks: [],
    totals: { events: 0, turns: 0, failed: 0, running: 0, compactions: 0, unlinked: 0, tokens: NO_TOKENS },
  };
}

/**
 * The projection with one more event. The given projection does not change, and unaffected parts stay the same objects.
 * Events already folded change nothing. An event of an unknown kind or with an unreadable body is only counted.
 */
export function foldEvent(projection: Projection, event: Event): Projection {
  return foldEvents(projection, [event]);
}

/** Folds several events with a single copy. */
export function foldEvents(projection: Projection, events: Iterable<Event>): Projection {
  let draft: Draft | null = null;
  for (const event of events) {
    if (!isNext(event, draft?.next ?? projection)) continue;
    draft ??= draftOf(projection);
    foldInto(draft, event);
  }
  return draft?.next ?? projection;
}

function isNext(event: Event, { seq }: Projection): boolean {
  const given = event as unknown;
  return typeof given === 'object' && given !== null && Number.isSafeInteger(event.seq) && event.seq > seq;
}

function foldInto(draft: Draft, event: Event): void {
  const { next } = draft;
  next.seq = event.seq;
  if (typeof event.at === 'number') {
    next.at = event.at;
    if (next.totals.events === 0) next.began = event.at;
  }
  ownTotals(draft).events += 1;
  draft.touched.clear();
  for (const fold of FOLDS) {
    try {
      fold(draft, event);
    } catch {
      // Another version may write other bodies. The other folds still apply, and the event is shown raw.
    }
  }
  settleConditions(draft, event);
}

/** Agents come first, because later folds need them. Talk comes last, so that a turn sees only earlier messages. */
const FOLDS = [
  foldConversation,
  foldAgents,
  foldTask,
  foldTurn,
  foldCompaction,
  foldArrow,
  foldLink,
  foldTalk,
] as const;
