import { type Event, type EventOf, eventOf, TroupeError } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import { minutesPass } from './person.ts';
import { scheduledMessage, waitsOf } from './recorded-times.ts';
import { isPersons } from './recorded-turns.ts';
import { clip } from './show-run.ts';
import type { UserMove } from './user.ts';

/** What the people of a conversation did, and the texts that they attached, by name. */
export interface RecordedMoves {
  moves: UserMove[];
  files: Record<string, string>;
}

const MOST_QUESTION = 60;

/**
 * The people of a run as moves. What came by itself, such as a reminder or the message of a schedule, becomes minutes that
 * pass. `unaddressed`: the agent that answers words that address nobody. Throws `command_refused` for what a test cannot play yet.
 */
export function recordedMoves(run: ConversationRun, unaddressed: string | undefined): RecordedMoves {
  const { events } = run;
  const minutesBefore = waitsOf(run);
  const made: RecordedMoves = { moves: [], files: {} };
  const asked = new Map<string, Event>();
  const hasSeveral = events.filter(({ kind }) => kind === 'question').length > 1;
  for (const event of events) {
    if (event.kind === 'question') asked.set(event.body.question, event);
    if (event.kind === 'approval.requested') asked.set(event.body.request, event);
    const isDue = isTimed(event);
    const move = isDue ? null : moveOf(event, { asked, hasSeveral, unaddressed, files: made.files });
    if (!move && !isDue) continue;
    const minutes = minutesBefore(event, isDue);
    if (minutes > 0) made.moves.push(minutesPass(minutes));
    if (move) made.moves.push(move);
  }
  return made;
}

interface Known {
  asked: ReadonlyMap<string, Event>;
  hasSeveral: boolean;
  unaddressed: string | undefined;
  files: Record<string, string>;
}

function moveOf(event: Event, known: Known): UserMove | null {
  if (event.author.kind !== 'user') return null;
  if (isPersons(event)) return saidMove(event as EventOf<'message'>, known);
  if (event.kind === 'question.answered') return answeredMove(event, known);
  if (event.kind === 'approval.decided') return decidedMove(event, known);
  if (event.kind === 'command' && !['archive', 'reopen'].includes(event.body.command))
    throw cannot(event, `gave the command ${event.body.command}`);
  return null;
}

function answeredMove(event: EventOf<'question.answered'>, { asked, hasSeveral }: Known): UserMove | null {
  const { author: by, body } = event;
  if (body.outcome !== 'answered') return null;
  const text = eventOf(asked.get(body.question) ?? event, 'question')?.body.text ?? '';
  const question = hasSeveral ? text.slice(0, MOST_QUESTION).toWellFormed() : undefined;
  return { move: 'answer', by, content: body.content, question };
}

function decidedMove(event: EventOf<'approval.decided'>, { asked }: Known): UserMove | null {
  const { author: by, body } = event;
  if (body.outcome !== 'approved' && body.outcome !== 'denied') return null;
  if (body.args !== undefined) throw cannot(event, 'approved a call with other arguments');
  const tool = eventOf(asked.get(body.request) ?? event, 'approval.requested')?.body.tool;
  const note = body.note === '' ? undefined : body.note;
  return { move: body.outcome === 'approved' ? 'approve' : 'deny', by, tool, note };
}

function saidMove(event: EventOf<'message'>, { unaddressed, files }: Known): UserMove {
  const { author: by, body, context } = event;
  const isFound = context?.routed !== undefined || event.to.length === 0 || event.to.join() === unaddressed;
  const to = isFound ? undefined : [...event.to];
  const attachments = body.attachments?.map((attachment, at) => {
    if (attachment.type !== 'text')
      throw cannot(event, `attached ${attachment.name ?? 'a file'}, which is no text`);
    const { name = `text-${at + 1}`, mediaType, text } = attachment;
    if (files[name] !== undefined && files[name] !== text)
      throw cannot(event, `attached two texts of the name ${name}`);
    files[name] = text;
    return { name, mediaType, data: new TextEncoder().encode(text) };
  });
  return { move: 'say', by, content: body.content, to, ...(attachments && { attachments }) };
}

/** It came by itself, as time passed. */
function isTimed(event: Event): boolean {
  const { id, kind, body, author } = event;
  if (scheduledMessage(event)) return true;
  if (kind === 'message') return author.kind === 'system' && id.startsWith('remind:');
  if (kind === 'question.answered' || kind === 'approval.decided') return body.outcome === 'expired';
  return false;
}

function cannot({ author, seq, conversation }: Event, what: string): TroupeError {
  const message = `${clip(author.name)} ${what} (#${seq} of ${conversation}): a test cannot play that yet`;
  return new TroupeError('command_refused', message, { conversation, seq });
}
