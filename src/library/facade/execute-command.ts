import { resolveAgent, type ConversationDeps } from '../../actors/conversations/messages.ts';
import { executeConversationCommand, retryTurn } from '../../actors/conversations/commands.ts';
import { forkConversation } from '../../actors/conversations/fork-conversation.ts';
import type { FeatureCommands } from '../../actors/attempt/turn-run.ts';
import type { Workflow } from '../../actors/attempt/feature-types.ts';
import { requireTrusted } from '../../actors/actor/engine-deps.ts';
import type { Engine } from '../../actors/engine/engine.ts';
import { executeTaskCommand, isTaskCommand } from '../../actors/tasks/task-commands.ts';
import { TroupeError } from '../../base/errors.ts';
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
} from '../../events/index.ts';
import { conversationId, mintId, parseDraft } from './parse-input.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { Redaction } from '../../events/redaction.ts';

interface CommandParts {
  conversations: ConversationDeps;
  engine: Pick<Engine, 'abort' | 'pause' | 'resume'>;
  tenant: TenantId;
  workflows: readonly Workflow[];
  commands: FeatureCommands;
  /** Whether agents compact their prompts. */
  compacts: boolean;
  /** Throws `conversation_unknown`. */
  existing: (conversation: string) => Promise<ConversationKey>;
}

export async function executeCommand(parts: CommandParts, given: Command, by: Author): Promise<Event> {
  const { conversations, engine, tenant, existing } = parts;
  const { deps, trust } = conversations;
  const command = deps.redaction ? redactCommand(deps.redaction, given, by) : given;
  // Refusals of commands to tasks are recorded in the log, so such commands are not refused here.
  if (isTaskCommand(command))
    return executeTaskCommand({ ...deps, trust }, await existing(command.conversation), command, by);
  requireTrusted(trust, by, 'give commands');
  requireCompaction(parts, command);
  if (isConversationCommand(command))
    return executeConversationCommand(conversations, await existing(command.conversation), command, by);
  if (command.command === 'phase')
    return needed(parts.commands.phase, 'phases')(
      conversations,
      await existing(command.conversation),
      command,
      by,
    );
  if (command.command === 'run') {
    const log = { tenant, conversation: conversationId(command.conversation) };
    return needed(parts.commands.run, 'workflows')(
      { ...conversations, workflows: parts.workflows },
      log,
      command,
      by,
    );
  }
  if (command.command === 'retry') return retryTurn(conversations, tenant, command.turn, by);
  if (command.command === 'rerun')
    return needed(parts.commands.rerun, 'reruns')(conversations, tenant, command, by);
  if (command.command === 'fork') return forkConversation(conversations, tenant, command, by);
  const draft = commandDraft(command, by);
  if (command.command === 'mode' || command.command === 'directive')
    return appendOne(conversations, await existing(command.conversation), draft);
  if (command.command === 'abort') {
    const turn = parseTurnId(command.turn);
    if (!turn) throw new TroupeError('turn_unknown', `"${command.turn}" is not a turn id`);
    const log = await existing(turn.conversation);
    if (await engine.abort(tenant, command.turn)) return appendOne(conversations, log, draft);
    const message = `turn ${command.turn} is not running: it has ended or never began`;
    throw new TroupeError('command_refused', message, { turn: command.turn });
  }
  const agent = resolveAgent(deps.agents, command.agent);
  const address = { tenant, conversation: conversationId(command.conversation), agent };
  await existing(command.conversation);
  const event = await appendOne(conversations, address, draft);
  await (command.command === 'pause' ? engine.pause(address) : engine.resume(address));
  return event;
}

function requireCompaction({ compacts }: CommandParts, { command }: Command): void {
  if (command !== 'compact' || compacts) return;
  throw new TroupeError('command_refused', 'nothing is compacted here: context.compaction is false');
}

function needed<T>(command: T | undefined, name: string): T {
  if (command !== undefined) return command;
  throw new TroupeError('command_refused', `this runtime has no ${name}`);
}

async function appendOne(
  { deps }: ConversationDeps,
  target: ConversationKey,
  draft: EventDraft,
): Promise<Event> {
  const [appended] = await deps.log.append(target, [draft]);
  if (!appended) throw new TroupeError('internal', 'the log did not return the appended event');
  return appended.event;
}

type PlainCommand = Exclude<
  Command,
  TaskCommand | ConversationCommand | CommandOf<'phase' | 'run' | 'retry' | 'fork' | 'rerun'>
>;

function commandDraft(command: PlainCommand, by: Author): EventDraft {
  return parseDraft({ id: mintId(), author: by, to: [], ...commandEvent(command) });
}

/** Commands to actors are recorded as `command` events; the others are recorded as the change itself. */
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

/** The text fields of each command, and the kind of event that stores them. */
const TEXTS: Partial<Record<Command['command'], { kind: EventKind; fields: readonly string[] }>> = {
  answer: { kind: 'question.answered', fields: ['content'] },
  decide: { kind: 'approval.decided', fields: ['note'] },
  cancelTask: { kind: 'delegation.ended', fields: ['reason'] },
  directive: { kind: 'run.directive', fields: ['directive', 'brief'] },
  run: { kind: 'run.directive', fields: ['directive'] },
  phase: { kind: 'phase.changed', fields: ['phase', 'instructions'] },
  leave: { kind: 'membership.changed', fields: ['reason'] },
  block: { kind: 'membership.changed', fields: ['reason'] },
  dispatch: { kind: 'injection', fields: ['note'] },
  archive: { kind: 'command', fields: ['reason'] },
  reopen: { kind: 'command', fields: ['reason'] },
};

/** Redacts a command on its way in. Redacting the stored event is too late: commands are compared with the log. */
export function redactCommand(redaction: Redaction, command: Command, author: Author): Command {
  const { kind, fields } = TEXTS[command.command] ?? { kind: 'command', fields: [] };
  const made = Object.entries(command).map(([name, value]) => {
    if (name === 'args') return [name, redaction.body({ data: value }, { kind, author }).data];
    if (name === 'change') return [name, redaction.body({ change: value }, { kind, author }).change];
    const isText = typeof value === 'string' && fields.includes(name);
    return [name, isText ? redaction.text(value, { kind, author }) : value];
  });
  return Object.fromEntries(made) as Command;
}
