import { resolveAgent } from '../actors/conversations/address-message.ts';
import { executeConversationCommand } from '../actors/conversations/execute-conversation-command.ts';
import type { ConversationDeps } from '../actors/conversations/conversation-deps.ts';
import { forkConversation } from '../actors/conversations/fork-conversation.ts';
import { retryTurn } from '../actors/conversations/retry-turn.ts';
import { requireTrusted } from '../actors/conversations/trust.ts';
import type { Engine } from '../actors/engine/engine.ts';
import { changePhase } from '../actors/workflows/change-phase.ts';
import { startRun, type Workflow } from '../actors/workflows/start-run.ts';
import { executeTaskCommand, isTaskCommand } from '../actors/tasks/execute-task-command.ts';
import { TroupeError } from '../errors.ts';
import {
  type Author,
  type Command,
  type CommandOf,
  type ConversationCommand,
  type Event,
  type EventDraft,
  type EventKind,
  isConversationCommand,
  parseTurnId,
  type TaskCommand,
  type TenantId,
} from '../events/index.ts';
import { conversationId, mintId, parseDraft } from './parse-input.ts';
import type { ConversationKey } from '../store/store.ts';
import type { Redaction } from '../actors/log/redaction.ts';

/** What commands are carried with. */
export interface CommandParts {
  door: ConversationDeps;
  engine: Pick<Engine, 'abort' | 'pause' | 'resume'>;
  tenant: TenantId;
  workflows: readonly Workflow[];
  /** Throws `conversation_unknown`. */
  existing: (conversation: string) => Promise<ConversationKey>;
}

/** Does what somebody commands, and gives the event that says so. */
export async function executeCommand(parts: CommandParts, given: Command, by: Author): Promise<Event> {
  const { door, engine, tenant, existing } = parts;
  const { deps, trust } = door;
  const command = deps.redaction ? redactCommand(deps.redaction, given, by) : given;
  // Who is refused at a task stands in the log.
  if (isTaskCommand(command))
    return executeTaskCommand({ ...deps, trust }, await existing(command.conversation), command, by);
  requireTrusted(trust, by, 'give commands');
  if (isConversationCommand(command))
    return executeConversationCommand(door, await existing(command.conversation), command, by);
  if (command.command === 'phase')
    return changePhase(door, await existing(command.conversation), command, by);
  if (command.command === 'run') {
    const log = { tenant, conversation: conversationId(command.conversation) };
    return startRun(door, parts.workflows, log, command, by);
  }
  if (command.command === 'retry') return retryTurn(door, tenant, command.turn, by);
  if (command.command === 'fork') return forkConversation(door, tenant, command, by);
  const draft = commandDraft(command, by);
  if (command.command === 'mode' || command.command === 'directive') {
    return appendOne(door, await existing(command.conversation), draft);
  }
  if (command.command === 'abort') {
    const turn = parseTurnId(command.turn);
    if (!turn) throw new TroupeError('turn_unknown', `"${command.turn}" is not a turn id`);
    const log = await existing(turn.conversation);
    if (await engine.abort(tenant, command.turn)) return appendOne(door, log, draft);
    const message = `turn ${command.turn} is not running: it has ended or never began`;
    throw new TroupeError('command_refused', message, { turn: command.turn });
  }
  const agent = resolveAgent(deps.agents, command.agent);
  const address = { tenant, conversation: conversationId(command.conversation), agent };
  await existing(command.conversation);
  const event = await appendOne(door, address, draft);
  await (command.command === 'pause' ? engine.pause(address) : engine.resume(address));
  return event;
}

async function appendOne(
  { deps }: ConversationDeps,
  target: ConversationKey,
  draft: EventDraft,
): Promise<Event> {
  const [appended] = await deps.log.append(target, [draft]);
  if (!appended) throw new TroupeError('internal', 'the log gave no answer to an append');
  return appended.event;
}

type PlainCommand = Exclude<
  Command,
  TaskCommand | ConversationCommand | CommandOf<'phase' | 'run' | 'retry' | 'fork'>
>;

function commandDraft(command: PlainCommand, by: Author): EventDraft {
  return parseDraft({ id: mintId(), author: by, to: [], ...commandEvent(command) });
}

/** What a command appends: an actor's command is recorded as such, the others are the change itself. */
function commandEvent(command: PlainCommand): { kind: EventKind; body: object } {
  switch (command.command) {
    case 'mode': {
      const { mode, run } = command;
      return { kind: 'mode.changed', body: { mode, ...(run !== undefined && { run }) } };
    }
    case 'directive': {
      const { run, directive, brief = '', status } = command;
      return { kind: 'run.directive', body: { run, directive, brief, status } };
    }
    case 'abort':
      return { kind: 'command', body: { command: command.command, turn: command.turn } };
    case 'pause':
    case 'resume':
      return { kind: 'command', body: { command: command.command, agent: command.agent } };
  }
}

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
