import type { Answer } from '../troupe.ts';
import type { AgUiEvent, AgUiInterrupt, AgUiLifecycle, AgUiOutcome, AgUiUsage } from './protocol.ts';

interface Run {
  threadId: string;
  runId: string;
}

/** The last events of a run. `isNew`: it has begun with the message, so the tokens of its answer are its own. */
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
