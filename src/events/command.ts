import * as z from 'zod';
import { AgentId, ConversationId, EventId, Mode, RunId, TurnId, WorkflowRunId } from './ids.ts';

/** As `join` of an agent. */
const Policy = z.enum(['full', 'summary', 'fresh']);
const Reason = z.string().max(1_000).optional();
const About = { conversation: ConversationId };
const AboutAgent = { ...About, agent: AgentId };

/** What people decide about who takes part in a conversation, and whether it goes on. Each is the event it appends. */
export const CONVERSATION_COMMANDS = [
  /** `policy`: what a newcomer sees of what came before; its own by default. */
  z.strictObject({ command: z.literal('join'), ...AboutAgent, policy: Policy.optional() }),
  z.strictObject({ command: z.literal('leave'), ...AboutAgent, reason: Reason }),
  z.strictObject({ command: z.literal('block'), ...AboutAgent, reason: Reason }),
  z.strictObject({ command: z.literal('unblock'), ...AboutAgent }),
  /** Kept, with all that it knows, until somebody has work for it. */
  z.strictObject({ command: z.literal('retire'), ...AboutAgent }),
  z.strictObject({ command: z.literal('reinstate'), ...AboutAgent }),
  /** The former name of `reinstate`, accepted for one version. */
  z.strictObject({ command: z.literal('recall'), ...AboutAgent }).meta({ deprecated: true }),
  /** Lets in the next agent of a template. */
  z.strictObject({ command: z.literal('spawn'), ...About, template: AgentId }),
  /** Passes on what somebody said who may not address agents. */
  z.strictObject({
    command: z.literal('dispatch'),
    ...About,
    event: EventId,
    /** What the agents are told with it. */
    note: z.string().min(1).optional(),
  }),
  z.strictObject({ command: z.literal('archive'), ...About, reason: Reason }),
  z.strictObject({ command: z.literal('reopen'), ...About, reason: Reason }),
] as const;
export type ConversationCommand = z.infer<(typeof CONVERSATION_COMMANDS)[number]>;

export const CONVERSATION_COMMAND_NAMES = [
  'join',
  'leave',
  'block',
  'unblock',
  'retire',
  'reinstate',
  'recall',
  'spawn',
  'dispatch',
  'archive',
  'reopen',
] as const satisfies readonly ConversationCommand['command'][];

export function isConversationCommand(command: { command: string }): command is ConversationCommand {
  return CONVERSATION_COMMAND_NAMES.some((name) => name === command.command);
}

/** The id of a task, that of the event that opened it, or the beginning of either if that names one only. `all`: see `cancelTask`. */
const TaskName = z.string().min(1).max(256);

const Seq = z.int().nonnegative();
/** A conversation up to one of its events. */
export const ForkPlace = z.strictObject({ conversation: ConversationId, seq: Seq });
export type ForkPlace = z.infer<typeof ForkPlace>;

/**
 * What a person may ask. A command to an actor is an event once accepted, and its effect is another; `mode` and
 * `directive` are the very event that they append, and so are `answer`, `decide` and `cancelTask`.
 */
export const Command = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('abort'), turn: TurnId }),
  z.strictObject({ command: z.literal('pause'), conversation: ConversationId, agent: AgentId }),
  z.strictObject({ command: z.literal('resume'), conversation: ConversationId, agent: AgentId }),
  z.strictObject({
    command: z.literal('mode'),
    conversation: ConversationId,
    mode: Mode,
    /** The run that is meant where several have directives. */
    run: RunId.optional(),
  }),
  z.strictObject({
    command: z.literal('directive'),
    conversation: ConversationId,
    run: RunId,
    /** What the run is for. */
    directive: z.string().min(1),
    /** What the present step of its workflow is for. */
    brief: z.string().optional(),
    /** Of that step. */
    status: z.enum(['active', 'completed']),
  }),
  z.strictObject({
    command: z.literal('phase'),
    conversation: ConversationId,
    phase: z.string().min(1).max(200),
    /** What holds while it lasts; told to all but those who coordinate. */
    instructions: z.string().max(100_000).optional(),
    /** Whether the change says what came of the phase that it ends. Default: where agents have said anything in it. */
    summarise: z.boolean().optional(),
  }),
  z.strictObject({
    command: z.literal('run'),
    conversation: ConversationId,
    workflow: z.string().min(1).max(64),
    /** Id of the run. Default: a new one; with `step`, the last run of the workflow. */
    run: WorkflowRunId.optional(),
    /** What the run is for. Default: what its workflow says. */
    directive: z.string().min(1).optional(),
    /** Goes on from this step, by its id, with a run that has failed or hangs. */
    step: z.string().min(1).max(64).optional(),
  }),
  z.strictObject({
    command: z.literal('answer'),
    conversation: ConversationId,
    question: TaskName,
    content: z.string(),
  }),
  z.strictObject({
    command: z.literal('decide'),
    conversation: ConversationId,
    request: TaskName,
    approved: z.boolean(),
    /** For the agent, and for whoever reads the log. */
    note: z.string().optional(),
    /** Of the arguments that were looked at: refused where the request is for others. */
    argsHash: z.string().optional(),
  }),
  /** Of the task `all`: everything that came of what was said in the conversation, until a person speaks again. */
  z.strictObject({
    command: z.literal('cancelTask'),
    conversation: ConversationId,
    task: TaskName,
    reason: z.string().optional(),
  }),
  /** Asks an agent for its newest turn again, which failed or was stopped; an agent that has failed is resumed. */
  z.strictObject({ command: z.literal('retry'), turn: TurnId }),
  /** A new conversation of the events before the first input of `turn`, or of 1 to `seq` of `conversation`. */
  z.strictObject({
    command: z.literal('fork'),
    turn: TurnId.optional(),
    conversation: ConversationId.optional(),
    seq: Seq.optional(),
    /** Its id. Default: `<conversation>-fork-<seq>`, with a number where that is taken. */
    as: ConversationId.optional(),
  }),
  ...CONVERSATION_COMMANDS,
]);
export type Command = z.infer<typeof Command>;
export type CommandOf<K extends Command['command']> = Extract<Command, { command: K }>;
/** What people say to what agents wait for. */
export type TaskCommand = CommandOf<'answer' | 'decide' | 'cancelTask'>;
export const COMMANDS = [
  'abort',
  'pause',
  'resume',
  'mode',
  'directive',
  'phase',
  'run',
  'answer',
  'decide',
  'cancelTask',
  'retry',
  'fork',
  ...CONVERSATION_COMMAND_NAMES,
] as const;

/** `retry` is addressed to its agent, which it wakes; nothing else here addresses anybody. */
export const CommandBody = z.strictObject({
  /** `recall`: the stored name of `reinstate`. `cancelTask`: all that came of what was said before. */
  command: z.enum([
    'pause',
    'resume',
    'abort',
    'retry',
    'fork',
    'steer',
    'retire',
    'recall',
    'reinstate',
    'cancelTask',
  ]),
  agent: AgentId.optional(),
  turn: TurnId.optional(),
  /** Of a retry: what its turn failed with, absent where it was stopped, and the seqs of what that was to answer. */
  code: z.string().optional(),
  inputs: z.array(z.int().positive()).optional(),
  /** What was made of this conversation: the new one, and the last event that it has of this. */
  fork: ForkPlace.optional(),
  /** Where this conversation is from: all before this event is history, and nobody waits for anything of it. */
  from: ForkPlace.optional(),
});
export type CommandBody = z.infer<typeof CommandBody>;
