import type { SummaryRequest } from '../../context/index.ts';
import { addUsage } from '../../events/index.ts';
import { endOfThoughts } from '../../providers/thoughts.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import { type CallEnd, countCost } from '../turn/call-cost.ts';
import { payFor } from '../turn/ask-model.ts';
import type { SummaryAnswer } from '../turn/feature-types.ts';
import { takeCall } from '../turn/fail-call.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import type { Clock } from '../../base/clock.ts';

/** One call of the summariser, without tools. Usage and cost count for the turn. */
export async function askSummary(
  run: TurnRun,
  words: SummaryRequest,
  maxOutputTokens: number,
): Promise<SummaryAnswer> {
  const { turn, step, lease, deps, runtime } = run;
  const { profile, price } = runtime.summariser ?? runtime;
  if (!(await takeCall(run, profile.provider))) return { kind: 'aborted' };
  const nonce = Math.floor(deps.random() * 2 ** 32).toString(36);
  const call = {
    id: `${turn.id}/${step}/${lease.record.fence}.summary.${nonce}`,
    asked: { input: deps.countTokens(words.system) + deps.countTokens(words.user), maxOutputTokens },
    price,
  };
  const paid = await payFor(run, call, async () => {
    const outcome = await ask(run, words, maxOutputTokens);
    return { outcome, end: endOf(outcome) };
  });
  if (paid.kind === 'made') {
    countCost(deps.metrics, runtime.summariser ?? runtime, paid.spent, run.live.address.tenant);
    return paid.outcome;
  }
  if (paid.kind === 'aborted') return paid;
  return { kind: 'failed', code: 'budget_exceeded', message: paid.message };
}

function endOf(answer: SummaryAnswer): CallEnd {
  if (answer.kind === 'aborted') return { kind: 'aborted', heard: 0 };
  if (answer.kind === 'failed') return { kind: 'failed', code: answer.code, heard: 0 };
  return { kind: 'answered', usage: answer.usage, heard: 0, reportsLater: false };
}

async function ask(run: TurnRun, words: SummaryRequest, maxOutputTokens: number): Promise<SummaryAnswer> {
  const { deps, lease, runtime } = run;
  const { profile } = runtime.summariser ?? runtime;
  const { summaryIdleMs } = runtime.policy;
  using silence = createSilence(deps.clock, summaryIdleMs);
  const signal = AbortSignal.any([lease.signal, deps.stopping, silence.signal]);
  const request = requestOf(run, words, maxOutputTokens);
  const watch = run.watch.call({
    purpose: 'compaction',
    step: run.step + 1,
    tries: 1,
    messages: request.messages,
    server: (runtime.summariser ?? runtime).provider.server,
  });
  const heard = () => {
    silence.end();
    watch.heard();
  };
  const answer = await watch.within(() => read(run, request, signal, heard));
  watch.end(answer);
  const outcome = answer.kind === 'failed' ? answer.code : answer.kind;
  const { tenant } = run.live.address;
  deps.metrics.count('model_calls', { tenant, provider: profile.provider, outcome });
  if (answer.kind === 'answered') run.meanwhile.usage = addUsage(run.meanwhile.usage, answer.usage);
  if (answer.kind !== 'aborted') return answer;
  if (lease.signal.aborted || deps.stopping.aborted) return answer;
  return {
    kind: 'failed',
    code: 'provider_truncated',
    message: `the summary was silent for ${summaryIdleMs} ms`,
  };
}

async function read(
  run: TurnRun,
  request: ModelRequest,
  signal: AbortSignal,
  heard: () => void,
): Promise<SummaryAnswer> {
  const { provider } = run.runtime.summariser ?? run.runtime;
  let text = '';
  for await (const event of provider.stream(request, { signal })) {
    if (event.type === 'start') text = '';
    if (event.type === 'text' || event.type === 'thinking' || event.type === 'reasoning') heard();
    if (event.type === 'text') text += event.delta;
    if (event.type === 'aborted') return { kind: 'aborted' };
    if (event.type === 'failed') {
      const { code, message } = event.error;
      return { kind: 'failed', code, message };
    }
    if (event.type === 'done') {
      if (event.doubt !== undefined)
        run.deps.models.doubt(run.live.address.tenant, run.live.address.agent, event.doubt);
      const { usage, response } = event;
      return {
        kind: 'answered',
        text: endOfThoughts(text)?.text ?? text,
        usage,
        ...(response && { response }),
      };
    }
  }
  return { kind: 'failed', code: 'provider_truncated', message: 'the provider ended without a result' };
}

function requestOf(
  { live, turn, step, runtime }: TurnRun,
  { system, user }: SummaryRequest,
  maxOutputTokens: number,
): ModelRequest {
  const { tenant, conversation, agent } = live.address;
  return {
    model: (runtime.summariser ?? runtime).profile.model,
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

/** Aborts its signal after a silence of `ms`. */
interface Silence extends Disposable {
  signal: AbortSignal;
  /** Ends the present silence: `ms` are counted from now. */
  end(): void;
}

function createSilence(clock: Pick<Clock, 'monotonic' | 'sleep'>, ms: number): Silence {
  const over = new AbortController();
  const quit = new AbortController();
  let heardAt = clock.monotonic();

  async function watch(): Promise<void> {
    for (let left = ms; left > 0 && !quit.signal.aborted; left = heardAt + ms - clock.monotonic())
      await clock.sleep(left, quit.signal);
    if (!quit.signal.aborted) over.abort();
  }

  void watch();
  return {
    signal: over.signal,
    end() {
      heardAt = clock.monotonic();
    },
    [Symbol.dispose]: () => quit.abort(),
  };
}
