import { hashText } from '../../../context/index.ts';
import { type ErrorCode, TroupeError } from '../../../errors.ts';
import { type Author, type Event, runtimeId, SYSTEM_AUTHOR, isAbout } from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import type { EngineDeps } from '../../engine/engine-deps.ts';

/** What somebody tried to do to a task, for the log. */
export interface Attempt {
  log: ConversationKey;
  by: Author;
  command: 'answer' | 'decide' | 'cancelTask';
  /** Its id; what was named, where there is none. */
  task: string;
  /** What they said of it. */
  said: string;
}

const ID_DIGITS = 24;
const MOST_QUOTED = 200;

/**
 * The refusal of what somebody may not do, or of what comes too late, after it stands in the log: who tried to decide
 * what is never lost. The same again adds nothing.
 */
export async function refusedInLog(
  deps: Pick<EngineDeps, 'log'>,
  { log, by, command, task, said }: Attempt,
  why: string,
  code: ErrorCode = 'command_refused',
): Promise<TroupeError> {
  const message = `${nameOf(by)} could not ${WORD[command]} ${quoted(task)}: ${why}`;
  const key = hashText(JSON.stringify([command, task, by.kind, by.id, said])).slice(0, ID_DIGITS);
  const id = runtimeId('refused', key);
  try {
    await deps.log.append(log, [
      { id, author: SYSTEM_AUTHOR, to: [], kind: 'error', body: { code, message } },
    ]);
  } catch (error) {
    // Told before, in other words.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  return new TroupeError(code, message, { task });
}

const WORD = { answer: 'answer', decide: 'decide', cancelTask: 'call off' } as const;

/** Who ended a task, how and when. */
export function howEnded(end: Event): string {
  const when = new Date(end.at).toISOString();
  const who = nameOf(end.author);
  if (!isAbout(end, 'taskEnd')) return `it ended at ${when}`;
  switch (end.kind) {
    case 'question.answered':
      if (end.body.outcome === 'answered')
        return `${who} answered ${JSON.stringify(quoted(end.body.content))} at ${when}`;
      return end.body.outcome === 'expired' ? `it expired at ${when}` : `${who} withdrew it at ${when}`;
    case 'approval.decided': {
      const { outcome, note } = end.body;
      if (outcome === 'expired') return `it expired at ${when}`;
      const did = { approved: 'approved', denied: 'denied', withdrawn: 'withdrew' }[outcome];
      return `${who} ${did} it at ${when}${note === '' ? '' : ` (${quoted(note)})`}`;
    }
    case 'delegation.completed':
    case 'delegation.aborted':
      return `it ended as ${end.body.outcome} at ${when}, by ${who}`;
  }
}

function nameOf({ kind, id, name }: Author): string {
  return kind === 'agent' ? `@${id}` : name === id ? quoted(name) : `${quoted(name)} (${quoted(id)})`;
}

function quoted(text: string): string {
  return text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED).toWellFormed()}…` : text;
}
