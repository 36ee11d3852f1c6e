import type { A2aMessage, A2aPart, A2aTask } from './protocol.ts';
import type { TaskView } from './task-view.ts';
import { type EventFile, filesIn } from '../http.ts';
import type { Event, Troupe } from '../troupe.ts';

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
  const files = filesIn(troupe);
  const history: A2aMessage[] = [];
  for (const event of told)
    history.push({
      messageId: event.id,
      contextId,
      taskId: id,
      role: 'ROLE_USER',
      parts: [...wordsIn(event), ...(await files(event)).map(partOf)],
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

function partOf({ mediaType, name, bytes, base64 }: EventFile): A2aPart {
  if (base64 === null) return { data: { file: { mediaType, name, bytes } } };
  return { raw: base64, mediaType, ...(name !== undefined && { filename: name }) };
}
