import type { EventDraftOf } from '../../events/index.ts';
import type { View } from '../view.ts';
import { adopt } from './adopt.ts';
import { pruneSlots } from './prune-slots.ts';
import { recount } from './recount.ts';

/** Cuts that a prompt tells of. Older ones have been covered by newer ones, or are placeholders by now. */
const MOST_CUTS = 16;

/**
 * Carries out a logged rewrite of the agent's own view. Everything it does follows from the event and from what the
 * view holds, so that a cold rebuild arrives at the same bytes.
 */
export function rewrite(view: View, event: EventDraftOf<'baseline' | 'prune'>): void {
  // One that was frozen for a turn comes into the log behind the turn's `upTo`: the turn may have begun the next since.
  if (event.kind === 'baseline' && event.body.epoch <= (view.baseline?.body.epoch ?? 0)) return;
  // What was reported before is of another prompt.
  view.anchor = null;
  view.cuts = view.cuts.slice(1 - MOST_CUTS);
  if (event.kind === 'prune') {
    const { events, memories, reason, tokens } = event.body;
    pruneSlots(view, { events: new Set(events), memories: new Set(memories) });
    view.cuts.push({ event: event.id, kind: 'prune', reason, tokens, results: events.length });
    recount(view, { hashes: true });
    return;
  }
  view.baseline = { id: event.id, body: event.body };
  if (event.body.adopts) adopt(view, event.id, event.body.adopts);
}
