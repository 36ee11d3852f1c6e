import type { Event, EventOf } from '../events/index.ts';
import { foldDirections, NO_DIRECTIONS } from '../machines/directions.ts';
import { MAX_FORKS } from './bounds.ts';
import { changeAgent, type Draft, own } from './draft.ts';

/** What holds for the conversation as a whole. */
export function foldConversation(draft: Draft, event: Event): void {
  const { next } = draft;
  const before = { ...NO_DIRECTIONS, mode: next.mode, archived: next.archived };
  const { mode, phase, archived } = foldDirections(before, event);
  next.mode = mode ?? next.mode;
  next.phase = phase?.phase ?? next.phase;
  next.archived = archived;
  if (event.kind === 'command') foldFork(draft, event);
}

/** The original names what was made of it, and the copy where it comes from. */
function foldFork(draft: Draft, { body }: EventOf<'command'>): void {
  if (body.command !== 'fork') return;
  const { fork, from } = body;
  if (from) {
    draft.next.origin = { conversation: from.conversation, seq: from.seq };
    forgetWaits(draft);
  }
  if (!fork) return;
  const forks = own(draft, 'forks');
  forks.push({ conversation: fork.conversation, seq: fork.seq });
  if (forks.length > MAX_FORKS) forks.shift();
}

/** All that was before is history in a fork: its agents have settled it, and are at rest. */
function forgetWaits(draft: Draft): void {
  for (const { id, parked, pending } of Object.values(draft.next.agents)) {
    changeAgent(draft, id, {
      pending: pending.length === 0 ? pending : [],
      parked: parked === 'retired' ? parked : null,
      problem: null,
    });
  }
}
