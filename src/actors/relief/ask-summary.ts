import type { SummaryRequest } from '../../context/index.ts';
import { addUsage, NO_USAGE, type Usage } from '../../events/index.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import type { TurnRun } from '../turn-run.ts';
import { SUMMARY_TIMEOUT_MS } from './compaction-lock.ts';

export type SummaryAnswer =
  | { kind: 'answered'; text: string; usage: Usage }
  | { kind: 'failed'; message: string }
  | { kind: 'aborted' };

/** One call of the model that summarises, without tools. Its usage is the turn's. */
export async function askSummary(
  run: TurnRun,
  { system, user }: SummaryRequest,
  maxOutputTokens: number,
): Promise<SummaryAnswer> {
  const { deps, lease, member } = run;
  const { provider, profile } = member.summariser ?? member;
  const late = new AbortController();
  const done = new AbortController();
  void deps.clock.sleep(SUMMARY_TIMEOUT_MS, done.signal).then(() => late.abort());
  const signal = AbortSignal.any([lease.signal, deps.stopping, late.signal]);
  const request = requestOf(run, { model: profile.model, system, user, maxOutputTokens });
  let text = '';
  try {
    for await (const event of provider.stream(request, { signal })) {
      if (event.type === 'start') text = '';
      if (event.type === 'text') text += event.delta;
      if (event.type === 'failed')
        return { kind: 'failed', message: `${event.error.code}: ${event.error.message}` };
      if (event.type === 'aborted') break;
      if (event.type === 'done') {
        const usage = addUsage(NO_USAGE, event.usage);
        run.usage = addUsage(run.usage, usage);
        return { kind: 'answered', text, usage };
      }
    }
  } finally {
    done.abort();
  }
  if (lease.signal.aborted || deps.stopping.aborted) return { kind: 'aborted' };
  return { kind: 'failed', message: late.signal.aborted ? 'no summary in time' : 'the provider broke off' };
}

function requestOf(
  { live, turn, step }: TurnRun,
  parts: { model: string; system: string; user: string; maxOutputTokens: number },
): ModelRequest {
  const { tenant, conversation, agent } = live.address;
  const { model, system, user, maxOutputTokens } = parts;
  return {
    model,
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
