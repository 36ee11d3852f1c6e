import type { Event, EventOf } from '../events/index.ts';
import { MAX_FORKS } from './bounds.ts';
import { changeAgent, type Draft, own } from './draft.ts';

/** What holds for the conversation as a whole. */
export function foldConversation(draft: Draft, event: Event): void {
  const { next } = draft;
  const isOurs = event.context?.imported !== true;
  switch (event.kind) {
    case 'mode.changed':
      if (isOurs) next.mode = event.body.mode;
      return;
    case 'phase.changed':
      if (isOurs) next.phase = event.body.phase;
      return;
    case 'archived':
    case 'reopened':
      next.archived = event.kind === 'archived';
      return;
    case 'command':
      return foldFork(draft, event);
    default:
  }
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
