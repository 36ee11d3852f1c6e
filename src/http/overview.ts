import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { ConversationId } from '../events/index.ts';
import type { Projection } from '../projection/model.ts';
import { type OverviewFigures, overviewFigures } from '../projection/needs.ts';
import { newProjection } from '../projection/projection.ts';
import type { ConversationInfo, Troupe } from '../troupe.ts';
import type { ProjectionBook } from './access/projection-books.ts';

/** A conversation in a list. The agents' state is missing while a long conversation is read for the first time. */
interface OverviewLine extends OverviewFigures {
  id: ConversationId;
  head: number;
  at: number;
}

/** Longest wait for conversations that were not read before; reading continues in the background for the next answer. */
const MAX_WAIT_MS = 2_000;

export async function readOverview(
  troupe: Pick<Troupe, 'listConversations'>,
  book: ProjectionBook,
  clock: Clock,
  limit: number,
): Promise<{ conversations: OverviewLine[]; more: boolean }> {
  const { conversations: found, next } = await troupe.listConversations({ limit });
  const over = new AbortController();
  const late = clock.sleep(MAX_WAIT_MS, over.signal).then(() => null);
  const lines: OverviewLine[] = [];
  for (const info of found) {
    const read = book.latest(info.id).catch(unknownAsNull);
    lines.push(lineOf(info, await Promise.race([read, late])));
  }
  over.abort();
  return { conversations: lines, more: next !== null };
}

function unknownAsNull(error: unknown): null {
  // The conversation was deleted meanwhile.
  if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
  throw error;
}

function lineOf({ id, head, at }: ConversationInfo, projection: Projection | null): OverviewLine {
  return {
    id,
    head: Math.max(head, projection?.seq ?? 0),
    at: Math.max(at, projection?.at ?? 0),
    ...overviewFigures(projection ?? newProjection(id)),
  };
}
