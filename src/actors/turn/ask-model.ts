import {
  addUsage,
  type PromptRecord,
  type Reasoning,
  type ToolCall,
  type ActorAddress,
  PromptReceipt,
} from '../../events/index.ts';
import { type ErrorCode, TroupeError, policyOf } from '../../base/errors.ts';
import { receiptOf, limitIn } from '../../context/index.ts';
import type { ModelEvent, ModelFailure, ModelRequest } from '../../providers/provider.ts';
import { endOfThoughts, THOUGHTS_END } from '../../providers/thoughts.ts';
import { type FinishedCalls, wholeCalls } from '../../providers/call-text.ts';
import { type CallEnd, countCost, noteOther, spent } from '../attempt/call-cost.ts';
import type { CallEnded, CallWatch } from '../attempt/watch-turn.ts';
import type { Sending, PaidCall, SessionEvent, Paid } from '../attempt/feature-types.ts';
import { faultOfEnd, faultOfText } from './judge-answer.ts';
import { type Answered, checkReply } from './check-reply.ts';
import { hearAnswer, tell } from './hear-answer.ts';
import { withImages, leaveImagesOut } from './images.ts';
import {
  cacheKeyOf,
  type ModelAnswer,
  type TurnRun,
  writeReceipts,
  changed,
  type FailedCall,
  type Outcome,
  ownDraft,
  written,
} from '../attempt/turn-run.ts';
import type { Store } from '../../store/store.ts';
import { backoffMs } from '../../providers/provider.ts';
import { policyFor } from '../attempt/model-window.ts';

type Asked =
  | { kind: 'answered'; answer: ModelAnswer }
  /** `sending`: the prompt that was refused or not answered. */
  | { kind: 'failed'; failure: ModelFailure; sending: Sending }
  | { kind: 'refused'; message: string }
  | { kind: 'aborted' };

/**
 * Sends the prompt of the present step once, if the budget allows it. A lost session does not count as a failed try: the request
 * is sent to another session, finally to a new one.
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

/** The call as budgets see it. Its id contains the fence, because a try that is repeated after a crash may be paid for twice. */
function callOf(run: TurnRun, round: number): PaidCall {
  const { turn, step, lease, failure, prompt, runtime } = run;
  const { maxOutputTokens } = runtime.profile;
  return {
    id: `${turn.id}/${step}/${lease.record.fence}.${(failure?.tries ?? 0) + 1}.${round}`,
    asked: { input: prompt?.tokens.estimate ?? 0, maxOutputTokens },
    price: runtime.price,
  };
}

/** If an answer takes longer, its receipt is written meanwhile, because people may look at the prompt. */
const LONG_ANSWER_MS = 3_000;

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
  const end = endOf(run, heard);
  if (outcome.kind !== 'answered') {
    tell(run, { type: 'void', reason: endName(outcome), all: false });
    const { model } = run.runtime.profile;
    noteOther(run.meanwhile, { outcome: 'failed', model }, end, { input: sending.prompt.tokens.estimate });
  }
  // The answer is discarded, but its tokens count as spent.
  if (heard.kind === 'answered' && outcome.kind === 'failed')
    run.meanwhile.usage = addUsage(run.meanwhile.usage, heard.answer.usage);
  metrics.time('model_call', { provider }, clock.monotonic() - began);
  const ended = endName(outcome);
  metrics.count('model_calls', { tenant: run.live.address.tenant, provider, outcome: ended });
  call.end(reportOf(outcome));
  return { outcome, end };
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

/** How a call ended, for its cost. Does not depend on the check of the reply, because a discarded reply is paid for too. */
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
  // A prompt that was refused as too long may be sent again shorter. `failCall` records other failures.
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
  // A custom provider may return calls that were cut off. Calls of a session are checked by the program behind it.
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

/** Separates thoughts from the answer, for model templates that write the opening tag of thoughts themselves. */
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
  const begins = live.view.turn?.begins;
  return {
    model: runtime.profile.model,
    messages: prompt.messages,
    tools: prompt.tools,
    breakpoints: prompt.breakpoints,
    maxOutputTokens: runtime.profile.maxOutputTokens,
    cacheKey: cacheKeyOf(run),
    ...(session && { session: session.request }),
    ...(runtime.reply && { replySchema: runtime.reply.schema }),
    trace: {
      conversation,
      agent,
      turn: turn.id,
      step: run.step + 1,
      call: (run.failure?.tries ?? 0) + 1,
      ...(begins !== undefined && { begins: begins + 1 }),
    },
  };
}

/** Records one prompt per step: the accepted one, or the last refused one. */
export function recordPrompt(run: TurnRun, { prompt }: Sending): void {
  const { deps, meanwhile } = run;
  if (prompt === meanwhile.recorded) return;
  meanwhile.recorded = prompt;
  meanwhile.kept.receipts.push({ receipt: receiptOf(prompt), at: deps.clock.now() });
}

/** Makes a model call if every applicable budget allows it. The tree of a task always has one. */
export async function payFor<T>(
  run: TurnRun,
  call: PaidCall,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const { budget } = run.deps.features;
  if (budget && (budget.hasCaps || run.live.tasks.thread !== null)) return budget.pay(run, call, make);
  return spent(await make(), call.asked, call.price);
}

/** Silence of a model after which its prompt is stored for readers, ms, so that shorter calls cost no write. */
const SILENT_MS = 500;
/** Silence of a model after which operators are warned, ms. */
const LONG_SILENT_MS = 60_000;

type Watched = Pick<TurnRun, 'deps' | 'live' | 'lease' | 'meanwhile' | 'runtime'>;

/**
 * Makes the prompt of a call readable while the model is silent. The receipt of the step cannot do that: it means that the
 * prompt was answered, while a turn that is resumed before that may still take in messages. This copy is stored beside the log
 * under a separate key and removed when the call ends. Nothing waits for it, and the turn does not depend on it.
 */
function watchSilence(run: Watched, prompt: PromptRecord): Silence {
  const { deps, live, lease, meanwhile } = run;
  const over = new AbortController();
  let isHeard = false;
  const { fence } = lease.record;
  const key = `${keysOf(live.address)}${fence}.${prompt.step}.${meanwhile.rounds}`;

  async function store(): Promise<void> {
    await deps.clock.sleep(SILENT_MS, over.signal);
    if (over.signal.aborted) return;
    const before = await deps.store.derivedKeys(live.address, keysOf(live.address));
    await deps.store.putDerived(live.address, key, JSON.stringify(receiptOf(prompt)), deps.clock.now());
    // Left by a process that died.
    await deps.store.removeDerived(live.address, before);
    await deps.clock.sleep(LONG_SILENT_MS - SILENT_MS, over.signal);
    if (!over.signal.aborted && !isHeard) tellSilent(run, LONG_SILENT_MS);
    await new Promise((ended) => {
      if (over.signal.aborted) ended(null);
      else over.signal.addEventListener('abort', ended, { once: true });
    });
    // The store may be closing. The next call removes what is left.
    if (!deps.stopping.aborted) await deps.store.removeDerived(live.address, [key]);
  }

  store().catch((error: unknown) => deps.onWarning(error, `prompt of ${prompt.turn}`));
  return {
    heard: () => void (isHeard = true),
    end: () => over.abort('ended'),
  };
}

interface Silence {
  heard(): void;
  end(): void;
}

/** The receipt of a prompt that was sent to an agent's model and has no answer yet; null if there is none. */
export async function readUnheard(
  store: Pick<Store, 'derivedKeys' | 'readDerived'>,
  address: ActorAddress,
): Promise<PromptReceipt | null> {
  const keys = await store.derivedKeys(address, keysOf(address));
  const texts = await store.readDerived(address, keys.slice(-1));
  const [text] = texts;
  return text ? PromptReceipt.parse(JSON.parse(text)) : null;
}

function keysOf({ agent }: Pick<ActorAddress, 'agent'>): string {
  return `unheard/${agent}/`;
}

const TELL_EVERY_MS = 600_000;
const MOST_TOLD = 1_000;

/** When each server was reported last, by the listener of the warnings. */
const told = new WeakMap<object, Map<string, number>>();

type WaitingFor = Pick<TurnRun, 'deps' | 'live' | 'runtime'>;

/** Warns operators of a model server that does not answer, because nobody may be watching the conversation of the waiting turn. */
function tellAway(run: WaitingFor, { code, message, isAway }: ModelFailure): void {
  if (isAway === true || code === 'provider_unreachable') warnOf(run, message);
}

function tellSilent(run: WaitingFor, ms: number): void {
  warnOf(run, `the request was accepted, and nothing has come for ${Math.round(ms / 1_000)} s`);
}

function warnOf({ deps, live, runtime }: WaitingFor, cause: string): void {
  const { agent, conversation, tenant } = live.address;
  const { provider, profile } = runtime;
  const server = provider.server ? `${provider.server.address}:${provider.server.port}` : profile.provider;
  const times = told.get(deps.onWarning) ?? new Map<string, number>();
  told.set(deps.onWarning, times);
  const now = deps.clock.monotonic();
  if (now - (times.get(server) ?? -Infinity) < TELL_EVERY_MS) return;
  if (times.size >= MOST_TOLD) times.clear();
  times.set(server, now);
  const message = `${server} does not answer: ${cause}. @${agent} waits for it in ${conversation}`;
  const error = new TroupeError('provider_unreachable', message, { tenant, agent, conversation });
  deps.onWarning(error, `model of @${agent}`);
}

/** Logs a failed call with the text so far, and decides whether it is retried, shortened, or ends the turn. */
export async function failCall(run: TurnRun, failure: ModelFailure, sending: Sending): Promise<Outcome> {
  // No retry can succeed until an operator acts. The turn stays pinned, and other agents continue.
  if (policyOf(failure.code) === 'operator') throw new TroupeError(failure.code, failure.message);
  const without = leaveImagesOut(run, failure);
  if (without) return sendWithoutImages(without, failure);
  const failed = planRetry(run, failure);
  const { code, message, answered, wait, awayFrom } = failed;
  if (isNewFailure(run.failure, failed)) await logFailure(run, failed);
  tellAway(run, failure);
  const next = changed(run, { failure: failed, ending: { kind: 'failed', code, message } });
  const shortened = code === 'context_overflow' ? shorten(next, failure) : null;
  if (shortened) {
    // A shorter prompt is a new call, so the refusal does not count as a try.
    const uncounted = { ...failed, answered: run.failure?.answered ?? 0 };
    return { event: { type: 'OVERFLOWED' }, run: changed(shortened, { failure: uncounted }) };
  }
  recordPrompt(run, sending);
  // Written now, so that people can see the prompt while the call waits to be tried again.
  await written(run);
  return {
    event: {
      type: 'MODEL_FAILED',
      failed: { retryable: wait !== null, isAway: awayFrom !== null, answered },
    },
    run: next,
  };
}

/** Sends the request without some images. It is another request, so the refusal does not count as a try. */
async function sendWithoutImages(
  { run, count }: { run: TurnRun; count: number },
  failure: ModelFailure,
): Promise<Outcome> {
  const answered = run.failure?.answered ?? 0;
  const now = run.deps.clock.now();
  const what = count === 1 ? 'an image' : `${count} images`;
  const failed: FailedCall = {
    ...planRetry(run, failure),
    message: `${failure.message} (sent again without ${what})`,
    answered,
    awayFrom: null,
    wait: { ms: 0, next: now, until: null },
  };
  await logFailure(run, failed);
  return {
    event: { type: 'MODEL_FAILED', failed: { retryable: true, isAway: false, answered } },
    run: changed(run, { failure: failed }),
  };
}

async function logFailure(run: TurnRun, { code, message, tries, wait }: FailedCall): Promise<void> {
  const { deps, live, lease, step, meanwhile } = run;
  const retryUntil = wait?.until ?? undefined;
  await deps.log.append(live.address, [
    {
      // The id contains the fence and not the attempt, because an orderly stop does not count as an attempt.
      ...ownDraft(run, `error:${lease.record.fence}.${step}.${tries}`),
      kind: 'error',
      body: {
        code,
        message,
        step: step + 1,
        partial: meanwhile.partial,
        ...(retryUntil !== undefined && { retryUntil }),
      },
    },
  ]);
}

/** Requests a shorter prompt, once per step; null if that was done before. The refusal may name the window. */
function shorten(run: TurnRun, { message }: ModelFailure): TurnRun | null {
  const { compaction, prompt, runtime, live, deps } = run;
  if (compaction.overflowed || !prompt || !deps.features.compaction) return null;
  const named = limitIn(message)?.window;
  // If the refusal names no window, the refused size is an upper bound, for this turn only.
  const guessed = prompt.tokens.estimate + prompt.tokens.reserved;
  const model =
    named === undefined
      ? { ...run.model, window: Math.min(guessed, run.model.window ?? guessed) }
      : deps.models.learnWindow(live.address.tenant, runtime.profile, named);
  return changed(run, {
    model,
    policy: policyFor(runtime, model),
    compaction: { ...compaction, overflowed: true, tried: false, reason: 'overflow' },
  });
}

/**
 * Whether and when a failed call is tried again. The machine counts tries that a server answered. A server that does not answer
 * may be restarting or loading a model, so it is tried until `patienceMs` is over, the last time at its end.
 */
function planRetry(run: TurnRun, failure: ModelFailure): FailedCall {
  const before = run.failure;
  const now = run.deps.clock.now();
  const tries = (before?.tries ?? 0) + 1;
  const awayFrom = awaySince(run, failure);
  return {
    ...failure,
    tries,
    answered: (before?.answered ?? 0) + (awayFrom === null ? 1 : 0),
    since: before?.since ?? now,
    awayFrom,
    wait: planWait(run, failure, { tries, awayFrom, now }),
  };
}

/** Since when the server has not answered, monotonic ms; null if it answers. */
function awaySince({ deps, failure: before }: TurnRun, failure: ModelFailure): number | null {
  const isAway = failure.isAway === true && policyOf(failure.code) === 'retry' && deps.limits.patienceMs > 0;
  return isAway ? (before?.awayFrom ?? deps.clock.monotonic()) : null;
}

function planWait(
  { deps: { clock, random, limits } }: TurnRun,
  failure: ModelFailure,
  { tries, awayFrom, now }: { tries: number; awayFrom: number | null; now: number },
): FailedCall['wait'] {
  const left = awayFrom === null ? Infinity : awayFrom + limits.patienceMs - clock.monotonic();
  const pause = backoffMs(failure, tries, random);
  if (pause === null || left <= 0) return null;
  const ms = Math.min(pause, left);
  return { ms, next: Math.round(now + ms), until: awayFrom === null ? null : Math.round(now + left) };
}

/** Whether a failure is logged. While a server does not answer, only the first failure and new error messages are. */
function isNewFailure(before: FailedCall | null, { awayFrom, message, wait }: FailedCall): boolean {
  if (awayFrom === null || wait === null) return true;
  return before === null || before.awayFrom === null || before.message !== message;
}

/**
 * Waits before the next try of the same request; the lease is renewed meanwhile. After a restart the count begins again. While
 * a server does not answer, the slot is released for others.
 */
export async function backOff(run: TurnRun): Promise<Outcome> {
  const { deps, failure, lease, slot } = run;
  if (!failure) return { event: { type: 'RETRY_DUE' }, run };
  // A stopping process does not wait, because its successor starts the step again.
  const ended = AbortSignal.any([lease.signal, deps.stopping]);
  if (failure.awayFrom !== null) await slot.leave();
  await deps.clock.sleep(failure.wait?.ms ?? 0, ended, 'pause');
  await slot.regain(ended);
  if (lease.signal.aborted) return { event: { type: 'ABORTED' }, run };
  const { provider } = run.runtime.profile;
  deps.metrics.count('model_retries', { provider, code: failure.code });
  return { event: { type: 'RETRY_DUE' }, run: changed(run, { ending: { kind: 'done' } }) };
}

/** Waits until the provider's rate limit allows a call. Returns false if the turn was aborted meanwhile. */
export async function takeCall({ deps, live, lease }: TurnRun, provider: string): Promise<boolean> {
  for (;;) {
    const waitMs = await deps.admission.takeCall(live.address, provider);
    if (waitMs === 0) return true;
    await deps.clock.sleep(waitMs, AbortSignal.any([lease.signal, deps.stopping]), 'pause');
    if (lease.signal.aborted) return false;
    if (deps.stopping.aborted) throw deps.stopping.reason;
  }
}
