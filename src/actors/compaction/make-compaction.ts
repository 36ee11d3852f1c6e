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
} from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  AgentId,
  type CompactionBody,
  type Event,
  type EventId,
  eventOf,
  type EventOf,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import type { CompactionEvent } from '../../machines/compaction.ts';
import { askSummary } from './ask-summary.ts';
import { inSlices, tooCostly } from '../engine/in-slices.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { readPages } from '../log/read-pages.ts';
import { noteCompaction, type TurnCompaction } from './turn-compaction.ts';
import { requestTokens, windowFor } from '../turn/model-window.ts';
import * as z from 'zod';
import type { ConversationKey, Store } from '../../store/store.ts';
import { readOwn } from '../log/own-id.ts';

export interface SharedCompaction {
  id: EventId;
  body: CompactionBody;
}

export type Made = { kind: 'made'; compaction: SharedCompaction } | { kind: 'not'; event: CompactionEvent };

/**
 * Makes the next compaction of the conversation and logs it, for every agent to adopt. Its input begins with what the
 * last one kept, so nothing is lost between the two.
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
  };
}

/**
 * Tokens available for a prompt below which no summary is made. Nearly every turn would compact, a summary would have two
 * or three sentences, and reading the conversation for it would cost more than half of what turns do.
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

/** Includes a window learnt from a refusal: the request for a summary must not be refused too. */
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
    // Another process was first: its compaction counts.
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

/** Work that a token in memory counts as: what a turn may hold ends long before the memory of its process. */
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
 * Longer than most summaries take, so the lock is never renewed. A summary that takes longer may be paid for twice, and
 * counts once. Others wait no longer than a lease.
 */
const LOCK_MS = 600_000;

const Lock = z.object({ agent: AgentId, until: z.number() });

/** Compactions are numbered and an id is used once, so those of a conversation form one sequence. */
export function compactionDraft(number: number) {
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
 * Whether this agent may ask a model for the compaction of this number. The first to ask may, also after a crash. The lock
 * only saves a second call: the first compaction that is written counts. An expired lock does not count.
 */
export async function takeLock({ deps, live }: TurnRun, number: number): Promise<boolean> {
  const { tenant, conversation, agent } = live.address;
  const now = deps.clock.now();
  const mine = JSON.stringify({ agent, until: now + LOCK_MS } satisfies z.infer<typeof Lock>);
  const stored = await deps.store.journal(tenant, `compaction/${conversation}/${number}`, mine, now);
  const lock = Lock.parse(JSON.parse(stored));
  return lock.agent === agent || lock.until < now;
}
