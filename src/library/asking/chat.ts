import type { Answer, Troupe } from '../troupe.ts';
import type { ChatChange } from './chat-change.ts';
import { chatChanges } from './chat-changes.ts';
import type { Note } from '../../events/index.ts';

/** One reader's chat of a conversation, over several exchanges. */
export interface Chat {
  /**
   * What has come and comes of an event: a message, or what a command has recorded. What an earlier call has told is left out,
   * so after an approval in a thread the message that led to it may be followed again.
   */
  follow(seq: number, signal: AbortSignal): AsyncGenerator<ChatChange, Answer>;
}

export function openChat(troupe: Pick<Troupe, 'rejoin'>, conversation: string): Chat {
  const changesOf = chatChanges();
  /** Seq of the last event that was told, by conversation. */
  const told = new Map<string, number>();

  function isNews(note: Note): boolean {
    if (note.type !== 'event') return true;
    const { conversation: where, seq } = note.event;
    if (seq <= (told.get(where) ?? 0)) return false;
    told.set(where, seq);
    return true;
  }

  return {
    async *follow(seq, signal) {
      const going = troupe.rejoin(conversation, seq, { signal });
      try {
        for (;;) {
          const next = await going.next();
          if (next.done) return next.value;
          if (isNews(next.value)) yield* changesOf(next.value);
        }
      } finally {
        await going.return(undefined as never);
      }
    },
  };
}
