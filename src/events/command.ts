import * as z from 'zod';
import { Erasure } from './erasure.ts';
import {
  AgentId,
  ConversationId,
  EventId,
  JoinPolicy,
  Mode,
  RunId,
  Seq,
  TurnId,
  WorkflowRunId,
} from './ids.ts';
import { JsonData } from './message.ts';

const Reason = z.string().max(1_000).optional();
const About = { conversation: ConversationId };
const AboutAgent = { ...About, agent: AgentId };

/** Commands about the membership and the state of a conversation. Each is logged as the event of its effect. */
const CONVERSATION_COMMANDS = [
  /** Takes part from here on. Default of `policy`: `join` of the agent. */
  z.strictObject({ command: z.literal('join'), ...AboutAgent, policy: JoinPolicy.optional() }),
  /** Takes no part until it joins, or a person addresses it. */
  z.strictObject({ command: z.literal('leave'), ...AboutAgent, reason: Reason }),
  /** The same until `unblock`. */
  z.strictObject({ command: z.literal('block'), ...AboutAgent, reason: Reason }),
  z.strictObject({ command: z.literal('unblock'), ...AboutAgent }),
  /** Takes an agent out of service. It keeps its state and can be reinstated. */
  z.strictObject({ command: z.literal('retire'), ...AboutAgent }),
  z.strictObject({ command: z.literal('reinstate'), ...AboutAgent }),
  /** The former name of `reinstate`, accepted for one version. */
  z.strictObject({ command: z.literal('recall'), ...AboutAgent }).meta({ deprecated: true }),
  /** Compacts the agent's prompt before its next turn asks a model, however much room is left. */
  z.strictObject({ command: z.literal('compact'), ...AboutAgent }),
  /** Adds the next agent of a template. */
  z.strictObject({ command: z.literal('spawn'), ...About, template: AgentId }),
  /** Passes a held message on to the agents it names: its author may not address agents. */
  z.strictObject({
    command: z.literal('dispatch'),
    ...About,
    event: EventId,
    /** Text that the agents see with the message. */
    note: z.string().min(1).optional(),
  }),
  /** No agent delegates in an archived conversation. A message of a trusted person reopens it. */
  z.strictObject({ command: z.literal('archive'), ...About, reason: Reason }),
  z.strictObject({ command: z.literal('reopen'), ...About, reason: Reason }),
] as const;
export type ConversationCommand = z.infer<(typeof CONVERSATION_COMMANDS)[number]>;

const CONVERSATION_COMMAND_NAMES = [
  'join',
  'leave',
  'block',
  'unblock',
  'retire',
  'reinstate',
  'recall',
  'compact',
  'spawn',
  'dispatch',
  'archive',
  'reopen',
] as const satisfies readonly ConversationCommand['command'][];

export function isConversationCommand(command: { command: string }): command is ConversationCommand {
  return CONVERSATION_COMMAND_NAMES.some((name) => name === command.command);
}

const MAX_TEXT = 100_000;

/** What is different when a turn is run again. */
export const RerunChange = z.discriminatedUnion('kind', [
  /** Another text of the message that began the turn; if there were several, of the last one. */
  z.strictObject({ kind: z.literal('message'), content: z.string().min(1).max(MAX_TEXT) }),
  /** Other instructions of the agent, for this turn. */
  z.strictObject({ kind: z.literal('instructions'), text: z.string().max(MAX_TEXT) }),
  /** Another model, for this turn. `provider` must be that of an agent here; default: this agent's own. */
  z.strictObject({
    kind: z.literal('model'),
    model: z.string().min(1).max(256),
    provider: z.string().min(1).max(64).optional(),
  }),
  /** Another result of a call. The steps up to this call are taken from the turn; after it, the model is asked. */
  z.strictObject({
    kind: z.literal('toolResult'),
    /** Id of the call. */
    call: z.string().min(1).max(256),
    result: z.string().max(MAX_TEXT),
  }),
]);
export type RerunChange = z.infer<typeof RerunChange>;

/**
 * `recorded`: a call with the name and arguments of a call in the original turn gets the result of that call; any other
 * call is refused. `run`: any other call is executed.
 */
const RerunTools = z.enum(['recorded', 'run']);

/** A turn that is run again in a fork. */
export const Rerun = z.strictObject({
  /** The turn in the original. Its repetition has the same agent and number. */
  turn: TurnId,
  /** Absent: the same again. */
  change: RerunChange.optional(),
  tools: RerunTools,
});
export type Rerun = z.infer<typeof Rerun>;

/** The id of a task or of the event that opened it, or an unambiguous beginning of either. */
const TaskName = z.string().min(1).max(256);

/** 0 for a place before the first event. */
const SeqOrZero = z.int().nonnegative();
/** A conversation up to one of its events. */
export const ForkPlace = z.strictObject({ conversation: ConversationId, seq: SeqOrZero });
export type ForkPlace = z.infer<typeof ForkPlace>;

/**
 * A request of a person. A command to an actor is logged as a `command` event when accepted, and its effect as another
 * event. `mode`, `directive`, `answer`, `decide` and `cancelTask` are logged only as their effect.
 */
export const Command = z.discriminatedUnion('command', [
  /** Stops a running turn. */
  z.strictObject({ command: z.literal('abort'), turn: TurnId }),
  /** Takes no turn until `resume`. */
  z.strictObject({ command: z.literal('pause'), conversation: ConversationId, agent: AgentId }),
  /** Goes on after a pause or a failure. */
  z.strictObject({ command: z.literal('resume'), conversation: ConversationId, agent: AgentId }),
  /** How the conversation is used: `chat`, `agent` or `run`. */
  z.strictObject({
    command: z.literal('mode'),
    conversation: ConversationId,
    mode: Mode,
    /** The run that the mode is for, if several have directives. */
    run: RunId.optional(),
  }),
  /** What a run is for, shown in the prompts of run mode. */
  z.strictObject({
    command: z.literal('directive'),
    conversation: ConversationId,
    run: RunId,
    /** Purpose of the run. */
    directive: z.string().min(1),
    /** Purpose of the current step. */
    brief: z.string().optional(),
    /** Status of the current step. */
    status: z.enum(['active', 'completed']),
  }),
  /** Begins a phase, and ends the one before. */
  z.strictObject({
    command: z.literal('phase'),
    conversation: ConversationId,
    phase: z.string().min(1).max(200),
    /** Valid for the duration of the phase. All agents but coordinators see them. */
    instructions: z.string().max(100_000).optional(),
    /** Whether to summarise the phase that ends. Default: only if agents have spoken in it. */
    summarise: z.boolean().optional(),
  }),
  /** Runs a workflow, or continues a failed run. */
  z.strictObject({
    command: z.literal('run'),
    conversation: ConversationId,
    workflow: z.string().min(1).max(64),
    /** Id of the run. Default: a new one; with `step`, the last run of the workflow. */
    run: WorkflowRunId.optional(),
    /** Purpose of the run. Default: the directive of the workflow. */
    directive: z.string().min(1).optional(),
    /** Id of the step from which a failed or stuck run continues. */
    step: z.string().min(1).max(64).optional(),
  }),
  /** Answers a question of an agent. */
  z.strictObject({
    command: z.literal('answer'),
    conversation: ConversationId,
    question: TaskName,
    content: z.string(),
  }),
  /** Approves or denies a call. */
  z.strictObject({
    command: z.literal('decide'),
    conversation: ConversationId,
    request: TaskName,
    approved: z.boolean(),
    /** Shown to the agent. */
    note: z.string().optional(),
    /** Hash of the arguments that the person saw. A request with other arguments is refused. */
    argsHash: z.string().optional(),
    /** Approves the call with these arguments instead of those requested. */
    args: z.record(z.string(), JsonData).optional(),
  }),
  /** Cancels a task, a question or an approval. `task: 'all'`: all that the conversation has started, until a person speaks. */
  z.strictObject({
    command: z.literal('cancelTask'),
    conversation: ConversationId,
    task: TaskName,
    reason: z.string().optional(),
  }),
  /** Repeats the newest turn of an agent, if it failed or was stopped. An agent that has failed is resumed. */
  z.strictObject({ command: z.literal('retry'), turn: TurnId }),
  /** Copies the events before the first input of `turn`, or 1 to `seq` of `conversation`, to a new conversation. */
  z.strictObject({
    command: z.literal('fork'),
    turn: TurnId.optional(),
    conversation: ConversationId.optional(),
    seq: SeqOrZero.optional(),
    /** Id of the new conversation. Default: `<conversation>-fork-<seq>`, with a number if that is taken. */
    as: ConversationId.optional(),
  }),
  /** Runs an ended turn again, in a fork, with one change or none. */
  z.strictObject({
    command: z.literal('rerun'),
    turn: TurnId,
    change: RerunChange.optional(),
    /** Default: `recorded`. */
    tools: RerunTools.optional(),
    /** Id of the new conversation. Default: as for `fork`. */
    as: ConversationId.optional(),
  }),
  ...CONVERSATION_COMMANDS,
]);
export type Command = z.infer<typeof Command>;
/** The command of a name. */
export type CommandOf<K extends Command['command']> = Extract<Command, { command: K }>;
/** A command about a task that an agent waits for. */
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
  'rerun',
  ...CONVERSATION_COMMAND_NAMES,
] as const;

/**
 * An accepted command in the log. Only `retry` addresses its agent, and so wakes it. The runtime issues some commands
 * itself: it archives an inactive conversation, and reopens one when somebody writes in it.
 */
export const CommandBody = z.strictObject({
  /** `recall`: the stored name of `reinstate`. `cancelTask`: everything that earlier messages started. */
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
    'compact',
    'cancelTask',
    'archive',
    'reopen',
    'erase',
  ]),
  reason: z.string().optional(),
  agent: AgentId.optional(),
  turn: TurnId.optional(),
  /** For a retry: the error code of the repeated turn. Absent if that turn was stopped. */
  code: z.string().optional(),
  /** For a retry: the inputs of the repeated turn. */
  inputs: z.array(Seq).optional(),
  /** In the original: the new conversation, and the last event copied to it. */
  fork: ForkPlace.optional(),
  /** In the copy: the original. All earlier events are history here, and no agent waits because of them. */
  from: ForkPlace.optional(),
  /** In both, if the fork was made to run a turn again. */
  rerun: Rerun.optional(),
  erasure: Erasure.optional(),
});
export type CommandBody = z.infer<typeof CommandBody>;
