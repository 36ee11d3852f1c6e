import type { Redaction } from '../actors/log/redaction.ts';
import type { Author, Command, EventKind } from '../events/index.ts';

/** What of a command is text, and the kind of event that it goes into. */
const TEXTS: Partial<Record<Command['command'], { kind: EventKind; fields: readonly string[] }>> = {
  answer: { kind: 'question.answered', fields: ['content'] },
  decide: { kind: 'approval.decided', fields: ['note'] },
  cancelTask: { kind: 'delegation.aborted', fields: ['reason'] },
  directive: { kind: 'run.directive', fields: ['directive', 'brief'] },
  run: { kind: 'run.directive', fields: ['directive'] },
  phase: { kind: 'phase.changed', fields: ['phase', 'instructions'] },
  leave: { kind: 'left', fields: ['reason'] },
  block: { kind: 'left', fields: ['reason'] },
  dispatch: { kind: 'injection', fields: ['note'] },
  archive: { kind: 'archived', fields: ['reason'] },
  reopen: { kind: 'reopened', fields: ['reason'] },
};

/** Where it comes in, and not only on its way into the log: what it says is held against what the log has. */
export function redactCommand(redaction: Redaction, command: Command, author: Author): Command {
  const { kind, fields } = TEXTS[command.command] ?? { kind: 'command', fields: [] };
  const made = Object.entries(command).map(([name, value]) => {
    const isText = typeof value === 'string' && fields.includes(name);
    return [name, isText ? redaction.text(value, { kind, author }) : value];
  });
  return Object.fromEntries(made) as Command;
}
