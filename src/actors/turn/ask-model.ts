import { addUsage, type PromptRecord, type Reasoning, type ToolCall } from '../../events/index.ts';
import type { ErrorCode } from '../../base/errors.ts';
import { receiptOf } from '../../context/index.ts';
import type { ModelEvent, ModelFailure, ModelRequest, ResponseName } from '../../providers/provider.ts';
import { endOfThoughts, THOUGHTS_END } from '../../providers/thoughts.ts';
import { type FinishedCalls, wholeCalls } from '../../providers/call-text.ts';
import { type CallEnd, countCost, spent } from './call-cost.ts';
import type { CallEnded } from '../engine/span-facts.ts';
import type { Sending } from './session-run.ts';
import { faultOfEnd, faultOfText } from './answer-fault.ts';
import type { PaidCall, SessionEvent, Paid } from './feature-types.ts';
import { checkReply } from './check-reply.ts';
import { hearAnswer } from './hear-answer.ts';
import { tell } from './tell-live.ts';
import { watchSilence } from './watch-silence.ts';
import { withImages } from './images.ts';
import { cacheKeyOf, type ModelAnswer, type TurnRun, writeReceipts } from './turn-run.ts';
import type { CallWatch } from './watch-turn.ts';

export type Asked =
  | { kind: 'answered'; answer: ModelAnswer }
  /** `sending` is the prompt that was refused or not answered. */
  | { kind: 'failed'; failure: ModelFailure; sending: Sending }
  | { kind: 'refused'; message: string }
  | { kind: 'aborted' };

/**
 * Sends the prompt of the present step once, if the budget allows it. A lost session is not a failed try: the request is
 * sent to another session, in the end to a new one.
 */
export async function askModel(run: TurnRun): Promise<Asked> {
  const { session } = run.meanwhile;
  const { sessions } = run.deps.features;
  for (let round = 1; ; round += 1) {
    const sending: Sending = sessions && keepsSession(run) ? sessions.ask(run) : { prompt: promptOf(run) };
    const asked = sending.session?.request.kind ?? 'start';
    const make = () => {
      session.open = null;
      session.touched ||= asked !== 'start';
      return measured(run, sending);
    };
    const paid = await payFor(run, callOf(run, round), make);
    if (paid.kind === 'aborted' && !run.lease.signal.aborted) throw run.deps.stopping.reason;
    if (paid.kind !== 'made') return paid;
    countCost(run.deps.metrics, run.runtime, paid.spent, run.live.address.tenant);
    const { outcome } = paid;
    if (outcome.kind !== 'failed') return outcome;
    const isLost = outcome.failure.code === 'provider_session_lost';
    if (!isLost || asked === 'start') return { ...outcome, sending };
    if (asked === 'resume') sessions?.lose(run, outcome.failure.message);
  }
}

function keepsSession({ runtime }: TurnRun): boolean {
  return runtime.provider.capabilities.sessionResumption;
}

function promptOf({ prompt }: TurnRun): PromptRecord {
  if (!prompt) throw new Error('a model is called only with an assembled prompt');
  return prompt;
}

/** The fence is part of the id: a try that is repeated after a crash may be paid for twice. */
function callOf(run: TurnRun, round: number): PaidCall {
  const { turn, step, lease, failure, prompt, runtime } = run;
  const { maxOutputTokens } = runtime.profile;
  return {
    id: `${turn.id}/${step}/${lease.record.fence}.${(failure?.tries ?? 0) + 1}.${round}`,
    asked: { input: prompt?.tokens.estimate ?? 0, maxOutputTokens },
    price: runtime.price,
  };
}

/** An answer that takes longer is looked at while it is written: its prompt must be there. */
const LONG_ANSWER_MS = 3_000;

interface Answered {
  kind: 'answered';
  answer: ModelAnswer;
  response?: ResponseName;
}

type StreamOutcome = Answered | { kind: 'failed'; failure: ModelFailure } | { kind: 'aborted' };

async function measured(run: TurnRun, sending: Sending): Promise<{ outcome: StreamOutcome; end: CallEnd }> {
  const { metrics, clock } = run.deps;
  const { provider } = run.runtime.profile;
  const began = clock.monotonic();
  const call = run.watch.call({
    purpose: 'turn',
    step: run.step + 1,
    tries: (run.failure?.tries ?? 0) + 1,
    messages: sending.prompt.messages,
    server: run.runtime.provider.server,
  });
  run.meanwhile.rounds += 1;
  const silence = watchSilence(run, sending.prompt);
  const watch = {
    heard() {
      call.heard();
      silence.heard();
      if (run.meanwhile.kept.receipts.length > 0 && clock.monotonic() - began > LONG_ANSWER_MS)
        writeReceipts(run);
    },
  };
  const heard = await call.within(() => stream(run, sending, watch)).finally(() => silence.end());
  const mayFail = run.runtime.reply !== null || sending.prompt.tools.length > 0;
  const outcome = heard.kind === 'answered' && mayFail ? await checked(run, sending, heard) : heard;
  if (outcome.kind !== 'answered') tell(run, { type: 'void', reason: endName(outcome), all: false });
  // The answer is discarded; its tokens still count as spent.
  if (heard.kind === 'answered' && outcome.kind === 'failed')
    run.meanwhile.usage = addUsage(run.meanwhile.usage, heard.answer.usage);
  metrics.time('model_call', { provider }, clock.monotonic() - began);
  const ended = endName(outcome);
  metrics.count('model_calls', { tenant: run.live.address.tenant, provider, outcome: ended });
  call.end(reportOf(outcome));
  return { outcome, end: endOf(run, heard) };
}

async function checked(run: TurnRun, { prompt }: Sending, heard: Answered): Promise<Answered> {
  const outcome = await checkReply(run.runtime.reply, heard);
  const { answer } = outcome;
  if (answer.fault || answer.calls.length > 0 || 'data' in answer) return outcome;
  const fault = faultOfText(answer.text, prompt.tools);
  return fault ? { ...outcome, answer: { ...answer, fault } } : outcome;
}

function endName(outcome: StreamOutcome): ErrorCode | 'answered' | 'aborted' {
  return outcome.kind === 'failed' ? outcome.failure.code : outcome.kind;
}

function reportOf(outcome: StreamOutcome): CallEnded {
  if (outcome.kind === 'answered') {
    const { answer, response } = outcome;
    return { kind: 'answered', ...answer, ...(response && { response }) };
  }
  return outcome.kind === 'failed' ? { kind: 'failed', code: outcome.failure.code } : outcome;
}

/** Built before the reply is checked: a discarded reply was paid for too. */
function endOf({ deps, runtime, meanwhile }: TurnRun, heard: StreamOutcome): CallEnd {
  const words = deps.countTokens(meanwhile.partial);
  if (heard.kind === 'aborted') return { kind: 'aborted', heard: words };
  if (heard.kind === 'failed') return { kind: 'failed', code: heard.failure.code, heard: words };
  const { usage } = heard.answer;
  return {
    kind: 'answered',
    usage,
    heard: words,
    reportsLater: runtime.provider.capabilities.sessionResumption && heard.answer.doubt === undefined,
  };
}

async function stream(
  run: TurnRun,
  sending: Sending,
  watch: Pick<CallWatch, 'heard'>,
): Promise<StreamOutcome> {
  const { lease, runtime } = run;
  let reasoning: Reasoning | undefined;
  const calls: ToolCall[] = [];
  const answer = hearAnswer(run);
  const request = await requestOf(run, sending);
  for await (const event of runtime.provider.stream(request, { signal: lease.signal })) {
    answer.before(event.type);
    switch (event.type) {
      case 'start':
        break;
      case 'text':
        recordPrompt(run, sending);
        watch.heard();
        answer.text(event.delta);
        break;
      case 'thinking':
        watch.heard();
        answer.think(event.delta);
        break;
      case 'calling':
        watch.heard();
        answer.write(event.id, event.name, event.delta);
        break;
      case 'reasoning':
        watch.heard();
        reasoning = event.reasoning;
        answer.reasoning(event.reasoning);
        break;
      case 'call':
        watch.heard();
        calls.push(event.call);
        break;
      case 'begun':
      case 'session':
      case 'compacted':
        hearSession(run, event);
        break;
      case 'done':
      case 'failed':
      case 'aborted':
        run.meanwhile.partial = answer.said().text;
        if (event.type !== 'done') return brokenOff(run, sending, event);
        return finished(run, sending, event, { said: { ...answer.said(), calls, reasoning }, answer });
    }
  }
  run.meanwhile.partial = answer.said().text;
  return {
    kind: 'failed',
    failure: { code: 'provider_truncated', message: 'the provider ended without a result' },
  };
}

function hearSession(run: TurnRun, event: SessionEvent): void {
  run.deps.features.sessions?.hear(run, event);
}

function brokenOff(
  run: TurnRun,
  sending: Sending,
  event: Extract<ModelEvent, { type: 'failed' | 'aborted' }>,
): StreamOutcome {
  if (event.type === 'aborted') {
    recordPrompt(run, sending);
    return { kind: 'aborted' };
  }
  // A prompt that is refused as too long may be sent again shorter; `failCall` records the others.
  return { kind: 'failed', failure: event.error };
}

interface Heard {
  said: Pick<ModelAnswer, 'text' | 'original' | 'calls' | 'reasoning'>;
  answer: ReturnType<typeof hearAnswer>;
}

function finished(
  run: TurnRun,
  sending: Sending,
  event: Extract<ModelEvent, { type: 'done' }>,
  { said, answer: heard }: Heard,
): StreamOutcome {
  const { provider, profile } = run.runtime;
  const { maxOutputTokens } = profile;
  recordPrompt(run, sending);
  // Providers of a program's own may give calls that were cut. The calls of a session are its program's own matter.
  const isSettled = provider.capabilities.sessionResumption || event.broken !== undefined;
  const { calls, broken, isCut }: FinishedCalls =
    isSettled || said.calls.length === 0
      ? { calls: said.calls, broken: event.broken, isCut: false }
      : wholeCalls(said.calls, event, maxOutputTokens);
  for (const call of calls) heard.call(call);
  heard.end();
  const answer: ModelAnswer = {
    ...(said.text.includes(THOUGHTS_END)
      ? withoutThoughts(said, { provider: provider.name, model: profile.model })
      : said),
    calls,
    stop: isCut ? 'length' : event.stop,
    usage: event.usage,
    ...(event.doubt !== undefined && { doubt: event.doubt }),
    ...(sending.session && run.deps.features.sessions?.answered(run, sending, event)),
  };
  const fault =
    broken === undefined && answer.stop !== 'length'
      ? null
      : faultOfEnd(answer, { broken, hasTools: sending.prompt.tools.length > 0, maxOutputTokens });
  return {
    kind: 'answered',
    answer: fault ? { ...answer, fault } : answer,
    ...(event.response && { response: event.response }),
  };
}

/** For templates that write the opening tag of the thoughts themselves. */
function withoutThoughts(said: Heard['said'], by: Pick<Reasoning, 'provider' | 'model'>): Heard['said'] {
  const end = endOfThoughts(said.text);
  if (!end) return said;
  const reasoning = said.reasoning ?? (end.thoughts === '' ? undefined : { text: end.thoughts, ...by });
  return { ...said, text: end.text, original: said.original ?? said.text, reasoning };
}

async function requestOf(run: TurnRun, sending: Sending): Promise<ModelRequest> {
  const asked = plainRequest(run, sending);
  const { sessions } = run.deps.features;
  const joins = sessions && run.runtime.provider.capabilities.joins;
  return withImages(run, joins ? await sessions.withBegun(run, asked) : asked);
}

function plainRequest(run: TurnRun, { prompt, session }: Sending): ModelRequest {
  const { runtime, live, turn } = run;
  const { conversation, agent } = live.address;
  return {
    model: runtime.profile.model,
    messages: prompt.messages,
    tools: prompt.tools,
    breakpoints: prompt.breakpoints,
    maxOutputTokens: runtime.profile.maxOutputTokens,
    cacheKey: cacheKeyOf(run),
    ...(session && { session: session.request }),
    ...(runtime.reply && { replySchema: runtime.reply.schema }),
    trace: { conversation, agent, turn: turn.id, step: run.step + 1, call: (run.failure?.tries ?? 0) + 1 },
  };
}

/** Records one prompt per step: the accepted one, or the last refused one. */
export function recordPrompt(run: TurnRun, { prompt }: Sending): void {
  const { deps, meanwhile } = run;
  if (prompt === meanwhile.recorded) return;
  meanwhile.recorded = prompt;
  meanwhile.kept.receipts.push({ receipt: receiptOf(prompt), at: deps.clock.now() });
}

/** Makes a model call if every budget that applies allows it. The tree of a task always has one. */
export async function payFor<T>(
  run: TurnRun,
  call: PaidCall,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const { budget } = run.deps.features;
  if (budget && (budget.hasCaps || run.live.tasks.thread !== null)) return budget.pay(run, call, make);
  return spent(await make(), call.asked, call.price);
}
