/** What an erasure has changed. */
export interface Erased {
  /** Conversations and threads in which words were erased, or that are gone. */
  conversations: number;
  /** Events whose words are gone, all or some. */
  events: number;
  /** Files whose bytes are gone; of conversations and tenants also texts of prompts. */
  attachments: number;
  /** Outputs of tools, journals of turns, texts of prompts and notes. Those of conversations that are gone are not counted. */
  entries: number;
  /** Sessions with vendors that the agents will not go on with. */
  sessions: number;
}

export function emptyCount(): Erased {
  return { conversations: 0, events: 0, attachments: 0, entries: 0, sessions: 0 };
}
