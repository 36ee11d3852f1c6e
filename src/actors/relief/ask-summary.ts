import type { SummaryRequest } from '../../context/index.ts';
import { addUsage, type Usage } from '../../events/index.ts';
import type { ModelFailure, ModelRequest } from '../../providers/provider.ts';
import { takeCall } from '../take-call.ts';
import type { TurnRun } from '../turn-run.ts';
import { SUMMARY_TIMEOUT_MS } from './compaction-lock.ts';

export type SummaryAnswer =
  | { kind: 'answered'; text: string; usage: Usage }
  | ({ kind: 'failed' } & ModelFailure)
  | { kind: 'aborted' };

/** One call of the model that summarises, without tools. Its usage is the turn's. */
export async function askSummary(
  run: TurnRun,
  words: SummaryRequest,
  maxOutputTokens: number,
): Promise<SummaryAnswer> {
  const { deps, lease, member } = run;
  const { profile } = member.summariser ?? member;
  if (!(await takeCall(run, profile.provider))) return { kind: 'aborted' };
  const late = new AbortController();
  const done = new AbortController();
  void deps.clock.sleep(SUMMARY_TIMEOUT_MS, done.signal).then(() => late.abort());
  const signal = AbortSignal.any([lease.signal, deps.stopping, late.signal]);
  const answer = await read(run, requestOf(run, words, maxOutputTokens), signal);
  done.abort();
  const outcome = answer.kind === 'failed' ? answer.code : answer.kind;
  deps.metrics.count('model_calls', { provider: profile.provider, outcome });
  if (answer.kind === 'answered') run.usage = addUsage(run.usage, answer.usage);
  if (answer.kind !== 'aborted') return answer;
  if (lease.signal.aborted || deps.stopping.aborted) return answer;
  return { kind: 'failed', code: 'provider_truncated', message: 'no summary in time' };
}

async function read(run: TurnRun, request: ModelRequest, signal: AbortSignal): Promise<SummaryAnswer> {
  const { provider } = run.member.summariser ?? run.member;
  let text = '';
  for await (const event of provider.stream(request, { signal })) {
    if (event.type === 'start') text = '';
    if (event.type === 'text') text += event.delta;
    if (event.type === 'aborted') return { kind: 'aborted' };
    if (event.type === 'failed') return { kind: 'failed', ...event.error };
    if (event.type === 'done') return { kind: 'answered', text, usage: event.usage };
  }
  return { kind: 'failed', code: 'provider_truncated', message: 'the provider ended without a result' };
}

function requestOf(
  { live, turn, step, member }: TurnRun,
  { system, user }: SummaryRequest,
  maxOutputTokens: number,
): ModelRequest {
  const { tenant, conversation, agent } = live.address;
  return {
    model: (member.summariser ?? member).profile.model,
    messages: [
      { role: 'system', content: system, seqs: [] },
      { role: 'user', content: user, seqs: [] },
    ],
    tools: [],
    breakpoints: [],
    maxOutputTokens,
    cacheKey: `${tenant}/${conversation}/compaction`,
    trace: { conversation, agent, turn: turn.id, step: step + 1, call: 1, purpose: 'compaction' },
  };
}
