import { type Answer, type CommandInput, type CommandOf, TroupeError } from '../troupe.ts';
import type { AgUiEvent, AgUiInterrupt, AgUiLifecycle, AgUiOutcome, AgUiUsage } from './protocol.ts';
import type { Resumption } from './run-input.ts';

interface Run {
  threadId: string;
  runId: string;
}

/** The last events of a run. `isNew`: the run began with its message, so all tokens of the answer belong to it. */
export function endOf(
  { threadId, runId }: Run,
  answer: Answer,
  { interrupts, isNew }: { interrupts: AgUiInterrupt[]; isNew: boolean },
): (AgUiEvent | AgUiLifecycle)[] {
  const { failures, replies, text, data, usage, waits } = answer;
  const [failure] = failures;
  const isStopped = failures.length > 0 && failures.every(({ code }) => code === 'aborted');
  const isFruitless = replies.length === 0 && interrupts.length === 0;
  if (failure && isFruitless && !isStopped)
    return [{ type: 'RUN_ERROR', code: failure.code, message: `@${failure.agent}: ${failure.message}` }];
  const outcome: AgUiOutcome =
    interrupts.length > 0
      ? { type: 'interrupt', interrupts }
      : { type: isStopped && isFruitless ? 'cancelled' : 'success' };
  const idle = waits.filter(({ task }) => task.kind === 'delegation');
  return [
    ...idle.map(({ task: { id: task, assignee } }): AgUiEvent => ({
      type: 'CUSTOM',
      name: 'troupe.waiting',
      value: { task, assignee },
    })),
    ...failures.map((value): AgUiEvent => ({ type: 'CUSTOM', name: 'troupe.failure', value })),
    {
      type: 'RUN_FINISHED',
      threadId,
      runId,
      ...(outcome.type === 'success' && { result: data ?? text }),
      outcome,
      ...(isNew && { usage: [usageOf(usage)] }),
    },
  ];
}

function usageOf({ input, output, cacheRead, cacheWrite, reasoning }: Answer['usage']): AgUiUsage {
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    reasoningTokens: reasoning,
    cachedInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite,
  };
}

type Wait = Answer['waits'][number];

interface Places {
  /** The call that an approval is about. */
  callOf: (request: string) => string | undefined;
  /** The task that a conversation is the thread of. */
  taskOf: (conversation: string) => string | undefined;
  nameOf: (agent: string) => string;
}

/** The interrupts for the approvals and questions that the run waits for. */
export function interruptsOf(waits: readonly Wait[], places: Places): AgUiInterrupt[] {
  return waits.flatMap((wait) => interruptOf(wait, places) ?? []);
}

function interruptOf({ conversation, task }: Wait, places: Places): AgUiInterrupt | null {
  const { id, kind, owner, deadline, by = [], choices, text = '', tool = '', args = '', argsHash } = task;
  if (kind === 'delegation') return null;
  const subagentRunId = places.taskOf(conversation);
  const about = { conversation, agent: owner, by };
  const common = {
    id,
    ...(deadline !== null && { expiresAt: new Date(deadline).toISOString() }),
    ...(subagentRunId !== undefined && { subagentRunId }),
  };
  if (kind === 'question')
    return {
      ...common,
      reason: 'input_required',
      message: text,
      responseSchema: { type: 'string', ...(choices && { enum: choices }) },
      metadata: { troupe: about },
    };
  const toolCallId = places.callOf(id);
  return {
    ...common,
    reason: 'tool_call',
    message: `${places.nameOf(owner)} asks to call ${tool} ${args}`,
    ...(toolCallId !== undefined && { toolCallId }),
    responseSchema: APPROVAL,
    metadata: { troupe: { ...about, tool, args, argsHash } },
  };
}

const APPROVAL = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Replaces all arguments of the call.' },
    note: { type: 'string', description: 'Shown to the agent.' },
  },
  required: ['approved'],
};

/** Prefix of a question's id. */
const QUESTION = 'q-';

/** The command for a client's response to an interrupt. Throws `event_invalid`. */
export function commandOf({ interruptId, status, payload }: Resumption, conversation: string): CommandInput {
  if (status === 'cancelled')
    return { command: 'cancelTask', conversation, task: interruptId, reason: 'it was dismissed' };
  if (interruptId.startsWith(QUESTION)) {
    const content = typeof payload === 'string' ? payload : fieldOf(payload, 'answer');
    if (typeof content !== 'string') throw invalid(interruptId, 'a text');
    return { command: 'answer', conversation, question: interruptId, content };
  }
  return { command: 'decide', conversation, request: interruptId, ...decisionIn(payload, interruptId) };
}

/** Changed arguments are left out if the call is not approved. */
function decisionIn(
  payload: unknown,
  interrupt: string,
): Pick<CommandOf<'decide'>, 'approved' | 'args' | 'note'> {
  const approved = typeof payload === 'boolean' ? payload : fieldOf(payload, 'approved');
  const args = fieldOf(payload, 'editedArgs') ?? undefined;
  const note = fieldOf(payload, 'note') ?? '';
  const isMade = args === undefined || isRecord(args);
  if (typeof approved !== 'boolean' || !isMade || typeof note !== 'string')
    throw invalid(interrupt, '{ approved: boolean, editedArgs?: object, note?: string }');
  return { approved, ...(args && approved && { args }), ...(note !== '' && { note }) };
}

function fieldOf(payload: unknown, name: string): unknown {
  return isRecord(payload) && Object.hasOwn(payload, name) ? payload[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(interrupt: string, expected: string): TroupeError {
  return new TroupeError('event_invalid', `resume: the payload of ${interrupt} is to be ${expected}`, {
    path: 'resume',
  });
}
