import { type Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { ConversationId } from '../events/index.ts';
import { excerptOf } from '../projection/match-event.ts';
import type { Row } from '../projection/model.ts';
import { rowOf } from '../projection/row.ts';
import type { Troupe } from '../troupe.ts';
import { backwards } from './scan-rows.ts';

const MAX_CONVERSATIONS = 50;
const MAX_EVENTS = 100_000;
const MAX_MS = 2_000;

export interface SearchHits {
  hits: { conversation: ConversationId; row: Row; excerpt: string }[];
  searched: { conversations: number; events: number };
  /** Whether something was left unsearched. */
  partial: boolean;
}

/** Looks for words in all conversations, the last active one first, and in each from its end. */
export async function searchConversations(
  troupe: Pick<Troupe, 'listConversations' | 'events'>,
  clock: Clock,
  { query, limit }: { query: string; limit: number },
): Promise<SearchHits> {
  const started = clock.now();
  const { conversations: found, next } = await troupe.listConversations({ limit: MAX_CONVERSATIONS });
  const hits: SearchHits['hits'] = [];
  const searched = { conversations: 0, events: 0 };
  const isEnough = () =>
    hits.length >= limit || searched.events >= MAX_EVENTS || clock.now() - started >= MAX_MS;
  for (const { id: conversation, head } of found) {
    if (isEnough()) return { hits, searched, partial: true };
    searched.conversations += 1;
    try {
      for await (const page of backwards(troupe, conversation, head + 1)) {
        for (const event of page) {
          if (isEnough()) return { hits, searched, partial: true };
          searched.events += 1;
          const excerpt = excerptOf(event, query);
          if (excerpt !== null) hits.push({ conversation, row: rowOf(event), excerpt });
        }
      }
    } catch (error) {
      // Deleted meanwhile.
      if (!(error instanceof TroupeError) || error.code !== 'conversation_unknown') throw error;
    }
  }
  return { hits, searched, partial: next !== null };
}
