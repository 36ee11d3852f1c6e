import { setTimeout as delay } from 'node:timers/promises';
import type { Provider } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { openStage } from '../../packages/agents/test/claude-code-stage.ts';
import { CODEX_MODEL, startCodexStage } from '../../packages/agents/test/codex-stage.ts';
import { DOES_NOT_RUN } from './unusable.ts';

/** For a program that hangs; one that works answers in seconds. */
const ANSWER_WITHIN_MS = 120_000;

/** One turn of the real program in front of a fake API. Null if it was answered, else why not. */
export async function tryClaudeCode(): Promise<string | null> {
  await using stage = await openStage(() => ({ text: 'yes' }));
  return await whyNoAnswer(stage.provider, 'm');
}

export async function tryCodex(): Promise<string | null> {
  await using stage = await startCodexStage(() => ({ text: 'yes' }));
  return await whyNoAnswer(stage.provider, CODEX_MODEL);
}

async function whyNoAnswer(provider: Provider, model: string): Promise<string | null> {
  const late = delay(ANSWER_WITHIN_MS, 'late' as const, { ref: false });
  const events = await Promise.race([
    collectEvents(provider, sampleRequest({ model, session: { kind: 'start' } })),
    late,
  ]);
  if (events === 'late') return `${DOES_NOT_RUN}: no answer within ${ANSWER_WITHIN_MS / 1000} s`;
  const last = events.at(-1);
  return last?.type === 'failed' ? `${DOES_NOT_RUN}: ${last.error.message}` : null;
}
