import type { A2aMessage, A2aPart, A2aTask } from '../../doors/a2a/protocol.ts';
import type { TaskView } from '../../doors/a2a/task-view.ts';
import { TroupeError } from '../../errors.ts';
import type { Event } from '../../events/index.ts';
import type { Troupe } from '../../troupe.ts';

/** Most bytes of files within one task; the others are named only. */
const MOST_BYTES = 4 * 1_024 * 1_024;

interface Shown {
  /** Most messages, the newest. Default: all. */
  historyLength?: number | undefined;
  /** Default true. */
  hasArtifacts?: boolean;
}

/** The task with what was said to it, and the files of that. */
export async function showTask(
  troupe: Troupe,
  view: TaskView,
  { historyLength, hasArtifacts = true }: Shown = {},
): Promise<A2aTask> {
  const { id, status, artifacts, said } = view;
  const contextId = said[0]!.conversation;
  const told = historyLength === undefined ? said : historyLength === 0 ? [] : said.slice(-historyLength);
  const files = filesOf(troupe);
  const history: A2aMessage[] = [];
  for (const event of told)
    history.push({
      messageId: event.id,
      contextId,
      taskId: id,
      role: 'ROLE_USER',
      parts: [...wordsIn(event), ...(await files(event))],
      metadata: { author: { id: event.author.id, name: event.author.name } },
    });
  return {
    id,
    contextId,
    status,
    ...(hasArtifacts && { artifacts }),
    ...(history.length > 0 && { history }),
  };
}

function wordsIn({ kind, body }: Event): A2aPart[] {
  if (kind === 'approval.decided') {
    const { request, outcome, note } = body;
    return [{ data: { request, approved: outcome === 'approved', note } }];
  }
  if (kind !== 'message' && kind !== 'question.answered') return [];
  return body.content === '' ? [] : [{ text: body.content }];
}

function filesOf(troupe: Troupe): (event: Event) => Promise<A2aPart[]> {
  let left = MOST_BYTES;
  return async ({ kind, body, conversation, seq }) => {
    if (kind !== 'message') return [];
    const parts: A2aPart[] = [];
    for (const [index, given] of (body.attachments ?? []).entries()) {
      const bytes = given.type === 'text' ? Buffer.byteLength(given.text) : given.bytes;
      const { mediaType, name } = given;
      const data = bytes > left ? null : await readOrNull(troupe, conversation, { seq, index });
      if (!data) {
        parts.push({ data: { file: { mediaType, name, bytes } } });
        continue;
      }
      left -= bytes;
      const raw = Buffer.from(data).toString('base64');
      parts.push({ raw, mediaType, ...(name !== undefined && { filename: name }) });
    }
    return parts;
  };
}

/** Null: an import, which has no bytes. */
async function readOrNull(
  troupe: Troupe,
  conversation: string,
  { seq, index }: { seq: number; index: number },
): Promise<Uint8Array | null> {
  try {
    return (await troupe.attachment(conversation, seq, index)).data;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'event_invalid') return null;
    throw error;
  }
}
