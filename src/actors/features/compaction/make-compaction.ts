import * as z from 'zod';
import {
  type ProposedCut,
  type CompactionBase,
  extractionSteps,
  latestCompaction,
  pairSafe,
  type Steps,
  summaryRequestSteps,
  summarySteps,
  verifySummary,
  type SummaryRequest,
  baselineTokens,
  type CompactionRun,
  limitIn,
  roomOf,
  startRun,
  addPerson,
  createPeople,
  DEFAULT_POLICY,
  type People,
} from '../../../context/index.ts';
import { TroupeError } from '../../../base/errors.ts';
import {
  AgentId,
  type CompactionBody,
  type Event,
  type EventId,
  eventOf,
  type EventOf,
  runtimeId,
  SYSTEM_AUTHOR,
  addUsage,
  type CompactionProgressBody,
  type CompactionReason,
} from '../../../events/index.ts';
import type { CompactionEvent } from '../../../machines/compaction.ts';
import { inSlices, tooCostly, readPages } from '../../log/read-log.ts';
import { type TurnRun, ownDraft } from '../../attempt/turn-run.ts';
import { requestTokens, windowFor, availableIn } from '../../attempt/model-window.ts';
import type { ConversationKey, Store } from '../../../store/store.ts';
import { readOwn } from '../../log/conversation-log.ts';
import { endOfThoughts } from '../../../providers/thoughts.ts';
import type { ModelRequest } from '../../../providers/provider.ts';
import { type CallEnd, countCost, noteOther } from '../../attempt/call-cost.ts';
import { payFor, takeCall } from '../../turn/ask-model.ts';
import type { SummaryAnswer, ImportedSummary } from '../../attempt/feature-types.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Metrics } from '../../../events/metrics.ts';
import { hasStalled, STALLED_AFTER } from '../../../context/compaction/strategies.ts';
import type { EngineDeps } from '../../actor/engine-deps.ts';

interface SharedCompaction {
  id: EventId;
  body: CompactionBody;
}

type Made = { kind: 'made'; compaction: SharedCompaction } | { kind: 'not'; event: CompactionEvent };

/**
 * Makes the next compaction of the conversation and logs it, so that every agent can adopt it. Its input begins with the content
 * of the last one, so nothing is lost between the two.
 */
export async function makeCompaction(
  work: TurnCompaction,
  cut: ProposedCut,
  strategy: 'summary' | 'extraction',
): Promise<Made> {
  const { run } = work;
  if (strategy === 'summary' && (!run.runtime.summarises || isTooSmall(work))) return not('SKIPPED');
  const previous = latestCompaction(run.live.view)?.body ?? null;
  const number = (previous?.number ?? 0) + 1;
  // Another agent, or this one before a crash, may have written it since this turn began.
  const there = await made(run, number);
  if (there) return { kind: 'made', compaction: there };
  const base = await baseOf(work, cut, previous);
  if (!base) return not('SKIPPED');
  const { deps, meanwhile } = run;
  const inTurn = <T>(steps: Steps<T>) => inSlices(deps.clock, steps, meanwhile.work);
  if (strategy === 'extraction') return log(work, number, await inTurn(extractionSteps(base)));
  if (!(await takeLock(run, number))) return not('LOCKED');
  const range = { from: 1, upTo: base.upTo };
  await noteCompaction(work, 'summarising', { strategy, range });
  const written = await summarise(work, base);
  if (written.kind === 'not') return written;
  const body = await inTurn(summarySteps({ ...base, ...written }));
  return body ? log(work, number, body) : failed(work, 'the summary does not fit into the available room');
}

/** Input of the next compaction; null if it would cover nothing new. */
async function baseOf(
  work: TurnCompaction,
  cut: ProposedCut,
  previous: CompactionBody | null,
): Promise<CompactionBase | null> {
  const { live, turn, deps } = work.run;
  const after = previous?.upTo ?? 0;
  const events = await readRange(work, after, turn.upTo);
  const upTo = pairSafe(events, cut.upTo);
  if (upTo <= after) return null;
  return {
    number: (previous?.number ?? 0) + 1,
    upTo,
    reason: work.reason,
    by: live.address.agent,
    before: cut.before,
    budget: cut.budget,
    events: events.filter(({ seq }) => seq <= upTo),
    previous,
    policy: work.policy,
    secret: live.view.secret,
    people: live.view.people,
    count: deps.countTokens,
    trusted: deps.trust ?? null,
    following: events.filter(({ seq }) => seq > upTo),
  };
}

/**
 * With fewer tokens available for a prompt, no summary is made. Nearly every turn would compact, a summary would have two or
 * three sentences, and reading the conversation for it would cost more than half as much as the turns.
 */
const LEAST_AVAILABLE = 2_500;

function isTooSmall({ room }: TurnCompaction): boolean {
  return room.available < LEAST_AVAILABLE;
}

async function summarise(
  work: TurnCompaction,
  { events, previous, people, secret, count, trusted }: CompactionBase,
): Promise<
  { kind: 'written'; text: string; usage: CompactionBody['usage'] } | { kind: 'not'; event: CompactionEvent }
> {
  const { run, policy } = work;
  const budgetTokens = policy.summaryTokens;
  const maxTokens = requestTokens(await summariserWindow(run), budgetTokens);
  const input = { previous, events, budgetTokens, people, secret, trusted: trusted ?? null };
  const steps = summaryRequestSteps({ ...input, maxTokens, count });
  const request = await inSlices(run.deps.clock, steps, run.meanwhile.work);
  if (!request) return failed(work, 'even the shortest request for a summary does not fit the window');
  const answer = await askSummary(run, request, Math.ceil(budgetTokens * 1.5));
  if (answer.kind === 'aborted') return not('ABORTED');
  if (answer.kind === 'failed') return failed(work, `${answer.code}: ${answer.message}`);
  const verdict = verifySummary(answer.text, {
    inputTokens: request.tokens,
    maxTokens: budgetTokens,
    count,
  });
  if (verdict.kind === 'rejected') return failed(work, `the summary was rejected: ${verdict.why}`);
  return { kind: 'written', text: verdict.text, usage: answer.usage };
}

/** The summariser's window. A window learnt from a refusal counts, so that the request is not refused too. */
export async function summariserWindow({ runtime, model, deps, live }: TurnRun): Promise<number> {
  const { summariser } = runtime;
  if (!summariser) return windowFor(runtime, model);
  return windowFor(summariser, await deps.models.get(live.address.tenant, summariser.profile));
}

async function failed(
  work: TurnCompaction,
  message: string,
): Promise<{ kind: 'not'; event: CompactionEvent }> {
  await noteCompaction(work, 'failed', { strategy: 'summary', message });
  return not('FAILED');
}

async function log(work: TurnCompaction, number: number, body: CompactionBody | null): Promise<Made> {
  if (!body) return not('FAILED');
  const { deps, live } = work.run;
  try {
    await deps.log.append(live.address, [{ ...compactionDraft(number), to: [], body }]);
  } catch (error) {
    // If another process was first, its compaction counts.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  const compaction = await made(work.run, number);
  return compaction ? { kind: 'made', compaction } : not('FAILED');
}

async function made({ deps, live }: TurnRun, number: number): Promise<SharedCompaction | null> {
  const event = await readCompaction(deps.store, live.address, number);
  if (!event) return null;
  const { id, body } = event;
  live.view.compactions.set(id, body);
  return { id, body };
}

/** Work per token in memory, so that the limit of a turn is reached long before the memory of its process is used up. */
const HELD = 16;

async function readRange({ run }: TurnCompaction, after: number, upTo: number): Promise<Event[]> {
  const { store } = run.deps;
  const events: Event[] = [];
  for await (const page of readPages(store, run.live.address, { after, upTo })) {
    run.meanwhile.work.left -= page.reduce((sum, { tokens }) => sum + tokens * HELD, 0);
    if (run.meanwhile.work.left < 0) throw tooCostly();
    events.push(...page);
  }
  return events;
}

function not(type: 'SKIPPED' | 'FAILED' | 'LOCKED' | 'ABORTED'): { kind: 'not'; event: CompactionEvent } {
  return { kind: 'not', event: { type } };
}

/**
 * Lifetime of the lock, longer than most summaries take, so that it is never renewed. A summary that takes longer may be paid
 * for twice but counts once. Other agents wait only half a minute.
 */
const LOCK_MS = 600_000;

const Lock = z.object({ agent: AgentId, until: z.number() });

/** Compactions are numbered, and an id is stored once, so those of a conversation form one sequence. */
function compactionDraft(number: number) {
  return { id: runtimeId('compaction', number), author: SYSTEM_AUTHOR, kind: 'compaction' as const };
}

export async function readCompaction(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  number: number,
): Promise<EventOf<'compaction'> | null> {
  const event = await readOwn(store, log, compactionDraft(number));
  return event && eventOf(event, 'compaction');
}

/**
 * Whether this agent may ask a model for the compaction of this number. The first agent that asks may, even after a crash. The
 * lock only saves a second call: the first compaction that is written counts. An expired lock does not count.
 */
export async function takeLock({ deps, live }: TurnRun, number: number): Promise<boolean> {
  const { tenant, conversation, agent } = live.address;
  const now = deps.clock.now();
  const mine = JSON.stringify({ agent, until: now + LOCK_MS } satisfies z.infer<typeof Lock>);
  const stored = await deps.store.journal(tenant, `compaction/${conversation}/${number}`, mine, now);
  const lock = Lock.parse(JSON.parse(stored));
  return lock.agent === agent || lock.until < now;
}

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
    const end = endOf(outcome);
    const came = outcome.kind === 'answered' ? 'summarised' : 'failed';
    noteOther(run.meanwhile, { outcome: came, model: profile.model }, end, call.asked);
    return { outcome, end };
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
  /** Restarts the time. */
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

/** The compaction that a running turn makes. */
export interface TurnCompaction extends CompactionRun {
  readonly run: TurnRun;
  /** Number of the compaction in the step, from 1. */
  readonly attempt: number;
}

export function startCompaction(run: TurnRun, reason: CompactionReason): TurnCompaction {
  const { prompt, policy, live } = run;
  if (!prompt) throw new TroupeError('internal', 'a compaction needs an assembled prompt');
  const { estimate, total } = prompt.tokens;
  // Computed again, because a refusal may have named a smaller window since the prompt was built.
  const available = availableIn(run.runtime, run.model);
  const asked = reason === 'overflow' ? Math.max(available, askedIn(run)) : 0;
  const sizes = {
    available,
    fixed: baselineTokens(run.baseline.body),
    ratio: Math.max(estimate, asked) / Math.max(1, total),
    reason,
    history: live.view.tokens,
  };
  const work = startRun(live.view, { reason, policy, room: roomOf(sizes, policy) });
  return { ...work, run, attempt: run.compaction.count + 1 };
}

/** Tokens of the refused request by the provider's count; 0 if it named none. */
function askedIn({ failure }: TurnRun): number {
  return limitIn(failure?.message ?? '')?.asked ?? 0;
}

/** Logs the progress of a compaction for people; no prompt depends on it. The id contains the fence, so a retry logs again. */
export async function noteCompaction(
  { run, reason, before, after, attempt }: TurnCompaction,
  phase: CompactionProgressBody['phase'],
  more: Partial<Pick<CompactionProgressBody, 'strategy' | 'range' | 'message'>> = {},
): Promise<void> {
  const { deps, live, lease, step } = run;
  const what = more.strategy ? `.${more.strategy}` : '';
  // The id contains the reason, because after a compaction that achieved nothing, a refusal may cause another one.
  const part = `compaction.${phase}:${lease.record.fence}.${step}.${attempt}.${reason}${what}`;
  const own = ownDraft(run, part);
  const tokens = { before, after: phase === 'started' ? null : after };
  const body: CompactionProgressBody = {
    phase,
    agent: live.address.agent,
    attempt,
    step: step + 1,
    reason,
    tokens,
    ...more,
  };
  await deps.log.append(live.address, [{ ...own, kind: 'compaction.progress', body }]);
  countCompaction(deps.metrics, body);
}

function countCompaction(
  metrics: Metrics,
  { phase, reason, strategy = 'prune', tokens }: CompactionProgressBody,
): void {
  if (phase === 'failed') metrics.count('compactions_failed', { reason });
  if (phase !== 'done' && phase !== 'pruned') return;
  metrics.count('compactions', { strategy, reason });
  metrics.count(
    'compaction_saved_tokens',
    { strategy, reason },
    tokens.before - (tokens.after ?? tokens.before),
  );
}

/** Why no further compaction is made; null if another one may be made. */
export function brokenCircuit(work: TurnCompaction): string | null {
  if (!hasStalled(work)) return null;
  return `the last ${STALLED_AFTER} compactions brought the prompt hardly under its limit, so no further one is made`;
}

/** Maximum tokens as rendered: the summary, people's words and facts. Small enough for most windows. */
const RECORDED_TOKENS = 8_000;

/**
 * Logs an imported summary as a compaction, which agents adopt like others. Adds people's words and the facts of the covered
 * events, which the imported text may lack. Returns false if the covered events are not the first ones of the conversation,
 * because the summary would then hide others.
 */
export async function recordSummary(
  deps: EngineDeps,
  log: ConversationKey,
  summary: ImportedSummary,
  { by, at }: { by: AgentId; at: number },
): Promise<boolean> {
  const { number, last, upTo } = summary;
  if (await readCompaction(deps.store, log, number)) return true;
  const previous = number === 1 ? null : await readCompaction(deps.store, log, number - 1);
  const covered = await deps.store.readById(log, last);
  if (covered?.seq !== upTo || (number > 1 && !previous)) return false;
  const body = await composed(deps, log, summary, { by, previous: previous?.body ?? null });
  if (!body) return false;
  const draft = { ...compactionDraft(number), to: [], body };
  await deps.log.append(log, [draft], { at: () => at, wake: false, spares: false });
  return true;
}

async function composed(
  deps: EngineDeps,
  log: ConversationKey,
  { number, upTo, text, filesRead, filesModified }: ImportedSummary,
  { by, previous }: { by: AgentId; previous: CompactionBody | null },
): Promise<CompactionBody | null> {
  const { events, people } = await readCovered(deps, log, upTo, previous?.upTo ?? 0);
  const before = events.reduce((sum, { tokens }) => sum + tokens, previous?.tokens.after ?? 0);
  const steps = summarySteps({
    number,
    upTo,
    reason: 'over_budget',
    by,
    // The summary is logged even if it is longer than the conversation.
    before: Math.max(before, RECORDED_TOKENS + 1),
    budget: RECORDED_TOKENS,
    events,
    previous,
    policy: DEFAULT_POLICY,
    secret: deps.secretOf({ ...log, agent: by }),
    people,
    count: deps.countTokens,
    trusted: deps.trust ?? null,
    text,
  });
  const body = await inSlices(deps.clock, steps);
  if (!body) return null;
  const { facts, tokens } = body;
  return {
    ...body,
    facts: {
      ...facts,
      filesRead: [...new Set([...facts.filesRead, ...filesRead])],
      filesModified: [...new Set([...facts.filesModified, ...filesModified])],
    },
    tokens: { ...tokens, before },
  };
}

/** The events since the previous compaction, and the people of the whole conversation so far. */
async function readCovered(
  deps: EngineDeps,
  log: ConversationKey,
  upTo: number,
  after: number,
): Promise<{ events: Event[]; people: People }> {
  const events: Event[] = [];
  const people = createPeople();
  for await (const page of readPages(deps.store, log, { after: 0, upTo })) {
    for (const event of page) {
      if (event.kind !== 'notice' && event.author.kind === 'user') addPerson(people, event.author, event.seq);
      if (event.seq > after) events.push(event);
    }
  }
  return { events, people };
}
