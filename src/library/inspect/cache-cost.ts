import {
  cacheRequestOf,
  countMessages,
  cacheRules,
  type CacheVendor,
  type CacheOutcome,
  type CacheReport,
  type CacheRequest,
  simulateCache,
} from '../../context/cache/cache-cost.ts';
import { type CacheBreak, locateBreak } from '../../context/cache/locate-break.ts';
import {
  type ActorAddress,
  addUsage,
  type AgentId,
  type ConversationId,
  type PromptReceipt,
  type PromptRecord,
  type TurnId,
  type Usage,
  type Event,
  parseTurnId,
  runtimeId,
  type TenantId,
  eventOf,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { inSlices, readPages, foldInSlices } from '../../actors/log/read-log.ts';
import type { AgentRuntime, FrozenBaseline } from '../../actors/actor/agent-runtime.ts';
import { chargeWork } from '../../base/work.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Store } from '../../store/store.ts';
import { costOf, type ModelPrice, priceOf } from '../../providers/prices.ts';
import { readReceipts, asSent, baselineOf } from './prompts.ts';
import { readStep } from '../../actors/turn/step-journal.ts';
import { buildPrompt, createView, forkView, type View } from '../../context/index.ts';
import { readBaseline } from '../../actors/turn/baseline.ts';
import { answeredStep } from '../../actors/turn/judge-answer.ts';

/** One model call: the simulated cache of a vendor, and the usage that the provider reported. Costs are in tokens of fresh input. */
interface CostRow extends Omit<CacheOutcome, 'brokeAt'> {
  /** Id of the turn. */
  turn: TurnId;
  /** Number of the call in the turn, from 1. */
  step: number;
  /** Approximate time, ms since the epoch. */
  at: number;
  /** Tokens of the answer. */
  output: number;
  /** Where and why this prompt stops repeating the one before it. */
  broke: CacheBreak | null;
  /** Pause before this call, ms; null if it was shorter than the lifetime of the cache. */
  coldAfterMs: number | null;
  /** Null if nothing was reported or the journal is gone. */
  reported: Usage | null;
  /** Whether the prompt was rendered again byte for byte as sent. */
  verified: boolean;
}

/** Cost of an agent's model calls under the cache of a vendor, in tokens of fresh input: 2,300 is the price of 2,300 such tokens. */
export interface CostReport {
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** The vendor whose rules of caching were applied. */
  vendor: CacheVendor;
  /** The model of the last call: its family determines minimum sizes and prices. */
  model: string;
  /** One per model call, oldest first. */
  rows: CostRow[];
  /** `uncached`: the cost without any cache. */
  total: CacheReport['total'] & { uncached: number };
  /** Sum over the rows with reported usage. */
  reported: Usage | null;
}

export interface CostOptions {
  /** Default: the vendor of the agent's provider and model. */
  vendor?: CacheVendor | undefined;
  /** Called for each turn before its first prompt is rendered. */
  onTurn?: ((turn: TurnId) => void) | undefined;
}

/** A model call without its messages, so that all calls fit into memory. Calls share the blocks of their prompts. */
type Call = Pick<CostRow, 'turn' | 'step' | 'broke' | 'reported' | 'verified'> & { request: CacheRequest };

/** The cost of all prompts of an agent in a conversation with a vendor's cache. Requests of other agents are left out. */
export async function cacheCost(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
  { vendor, onTurn }: CostOptions = {},
): Promise<CostReport> {
  const calls: Call[] = [];
  let before: PromptRecord | null = null;
  for await (const { prompt, whole, at, answer } of replayPrompts(deps, address, runtime)) {
    const { turn, step, verified } = prompt;
    if (turn === null) continue;
    if (turn !== before?.turn) onTurn?.(turn);
    const reported = await reportedFor(deps, address, prompt);
    await countInSlices(deps, whole, before);
    const request = cacheRequestOf(whole, {
      at,
      output: reported?.output ?? answer,
      count: deps.countTokens,
    });
    calls.push({ turn, step, verified, reported, request, broke: before && locateBreak(before, whole) });
    before = whole;
  }
  const { provider, model } = before ?? runtime.profile;
  return {
    conversation: address.conversation,
    agent: address.agent,
    ...priced(calls, vendor ?? vendorOf(provider, model), model),
  };
}

/** Number of messages that are counted and charged at a time. */
const CHARGED = 200;

/** Counts only the tokens of messages that `before` lacks, because the prompts of one agent share their messages. */
async function countInSlices(
  { clock, countTokens }: Pick<EngineDeps, 'clock' | 'countTokens'>,
  { messages }: PromptRecord,
  before: PromptRecord | null,
): Promise<void> {
  const known = new Set(before?.messages);
  const fresh = messages.filter((message) => !known.has(message));
  for (let from = 0; from < fresh.length; from += CHARGED) {
    await inSlices(clock, countMessages(fresh.slice(from, from + CHARGED), countTokens));
    await chargeWork(CHARGED, 0);
  }
}

function priced(
  calls: readonly Call[],
  vendor: CacheVendor,
  model: string,
): Omit<CostReport, 'conversation' | 'agent'> {
  const rules = cacheRules(vendor, model);
  const { requests, total } = simulateCache(
    calls.map(({ request }) => request),
    rules,
  );
  const rows = requests.map(({ input, read, written, fresh, cost }, index): CostRow => {
    const { request, ...call } = calls[index] as Call;
    const { at, output } = request;
    const pause = at - (calls[index - 1]?.request.at ?? at);
    const coldAfterMs = pause >= rules.ttlMs ? pause : null;
    return { ...call, at, input, read, written, fresh, output, cost, coldAfterMs };
  });
  const reported = rows.flatMap((row) => row.reported ?? []);
  return {
    vendor,
    model,
    rows,
    total: { ...total, uncached: total.input + total.output * rules.price.output },
    reported: reported.length > 0 ? reported.reduce(addUsage) : null,
  };
}

/** Null for a scripted model: its figures are guesses. */
async function reportedFor(
  { store }: EngineDeps,
  { tenant }: ActorAddress,
  receipt: PromptReceipt,
): Promise<Usage | null> {
  return receipt.provider === 'scripted' ? null : usageOf(store, tenant, receipt);
}

const BY_MODEL: readonly (readonly [RegExp, CacheVendor])[] = [
  [/claude/i, 'anthropic'],
  [/gemini/i, 'gemini'],
  [/deepseek/i, 'deepseek'],
];

/** The vendor whose cache serves an agent. A scripted model counts as Anthropic, the vendor with breakpoints. */
function vendorOf(provider: string, model: string): CacheVendor {
  if (provider === 'openai' || provider === 'codex') return 'openai';
  if (!['openai-compatible', 'ai-sdk', 'custom'].includes(provider)) return 'anthropic';
  return BY_MODEL.find(([pattern]) => pattern.test(model))?.[1] ?? 'openai';
}

/** Steps, calls and times of a turn. */
export interface TurnTrace {
  /** Id of the turn. */
  turn: TurnId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** How it ended, or `running`. */
  status: 'running' | 'done' | 'failed' | 'aborted';
  /** The inputs of the turn, then its own events. */
  events: Event[];
  /** One per model call, without messages. */
  prompts: TracedPrompt[];
  /** US dollars of the calls with a known price; null if there are none. */
  cost: number | null;
}

/** A receipt with the reported usage and its cost in US dollars. */
type TracedPrompt = PromptReceipt & { cost: number | null };

/** Everything one turn did, from the log. Throws `turn_unknown`. */
export async function traceTurn(deps: EngineDeps, tenant: TenantId, turn: string): Promise<TurnTrace> {
  const parts = parseTurnId(turn);
  const log = parts && { tenant, conversation: parts.conversation };
  const started = log && (await deps.store.readById(log, runtimeId(turn, 'started')));
  if (!parts || !log || started?.kind !== 'turn.started') {
    throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  }
  const inputs = await Promise.all(
    started.body.inputs.map((seq) => deps.store.read(log, { after: seq - 1, upTo: seq })),
  );
  const events = inputs.flat();
  let status: TurnTrace['status'] = 'running';
  for await (const page of readPages(deps.store, log, { after: started.seq - 1 })) {
    for (const event of page) {
      if (event.turn !== turn) continue;
      events.push(event);
      if (event.kind === 'turn.done') status = 'done';
      if (event.kind === 'turn.failed') status = 'failed';
      if (event.kind === 'turn.aborted') status = 'aborted';
      if (status !== 'running') break;
    }
    if (status !== 'running') break;
  }
  const { conversation } = parts;
  const agent = started.author.id as AgentId;
  const receipts = await readReceipts(deps, tenant, turn);
  const prompts = await Promise.all(receipts.map((receipt) => withUsage(deps, tenant, receipt)));
  return {
    turn: turn as TurnId,
    conversation,
    agent,
    status,
    events,
    prompts,
    cost: prompts.reduce<number | null>((sum, { cost }) => (cost === null ? sum : (sum ?? 0) + cost), null),
  };
}

/** The receipt with what the vendor reported for this call, if it has been answered. */
async function withUsage(deps: EngineDeps, tenant: TenantId, receipt: PromptReceipt): Promise<TracedPrompt> {
  const usage = await usageOf(deps.store, tenant, receipt);
  if (usage === null) return { ...receipt, cost: null };
  const price = priceOfCall(deps, receipt);
  return { ...receipt, usage, cost: price && costOf(usage, price) };
}

/** Today's price; for a model other than the agent's current one, the list price. */
export function priceOfCall(
  { agents }: Pick<EngineDeps, 'agents'>,
  { agent, model }: Pick<PromptReceipt, 'agent' | 'model'>,
): ModelPrice | null {
  const runtime = agents.get(agent);
  const known = [runtime, runtime?.summariser].find((each) => each?.profile.model === model);
  return known ? known.price : priceOf(model);
}

/** What the vendor reported for the call of a prompt; null: nothing, or it is no longer known. */
export async function usageOf(
  store: Pick<Store, 'readJournal'>,
  tenant: TenantId,
  { turn, step, usage }: PromptReceipt,
): Promise<Usage | null> {
  if (usage || turn === null) return usage ?? null;
  const entry = await readStep(store, tenant, turn, step - 1);
  return !entry || 'sealed' in entry ? null : entry.usage;
}

/** A model call of a turn that has ended. */
interface ReplayedCall {
  prompt: PromptRecord & { verified: boolean };
  /** The whole prompt. A session receives only the new part; this is everything it should hold. */
  whole: PromptRecord;
  /** Approximate time, ms: the calls of a turn are spread between its logged beginning and end. */
  at: number;
  /** Tokens of the answer, counted at its append; 0 if none was kept. */
  answer: number;
}

/**
 * Every prompt that an agent was sent in a conversation, in order, rendered again in one pass over the log. Memory holds
 * only the view and the current turn, and messages keep their identity from prompt to prompt. Running turns are left out,
 * because the log has their steps only when they end.
 */
async function* replayPrompts(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
): AsyncGenerator<ReplayedCall> {
  const view = createView(address.agent, deps.secretOf(address));
  let turn: ReplayedTurn | null = null;
  let baseline: FrozenBaseline | null = null;
  for await (const events of readPages(deps.store, address, { after: 0 })) {
    for (const event of events) {
      const receipt = turn && event.turn === turn.id ? answeredBy(event, turn) : undefined;
      if (turn && receipt) {
        const id = baselineOf(receipt);
        if (baseline?.id !== id) baseline = await readBaseline(deps.store, address, runtime, id);
        yield {
          ...render(view, { receipt, baseline, runtime }),
          at: timeOf(turn, receipt.step),
          answer: isAnswer(event) ? event.tokens : 0,
        };
      }
      const folding = foldInSlices(deps.clock, view, event);
      if (folding) await folding;
      if (turn && isEndOf(turn, event)) turn = null;
      const started = eventOf(event, 'turn.started');
      if (started?.author.id === address.agent) turn = await endedTurn(deps, address, started);
    }
  }
}

interface ReplayedTurn {
  id: TurnId;
  receipts: readonly PromptReceipt[];
  /** Number of steps that are rendered, or had no prompt. */
  rendered: number;
  began: number;
  ended: number;
}

/** The turn that this event starts; null if it is still running. */
async function endedTurn(
  deps: EngineDeps,
  address: ActorAddress,
  { turn: id, at }: Event,
): Promise<ReplayedTurn | null> {
  const end = id && (await deps.store.readById(address, runtimeId(id, 'end')));
  if (!id || !end) return null;
  const receipts = await readReceipts(deps, address.tenant, id);
  return { id, receipts, rendered: 0, began: at, ended: end.at };
}

/** The prompt that this event answers, or whose failure it records. */
function answeredBy(event: Event, turn: ReplayedTurn): PromptReceipt | undefined {
  const isLast = event.id === `${turn.id}:reply` || isEndOf(turn, event);
  const index = isLast ? turn.rendered : answeredStep(event);
  if (index === null || index < turn.rendered) return undefined;
  turn.rendered = index + 1;
  return turn.receipts.find(({ step }) => step === index + 1);
}

function isAnswer({ kind }: Event): boolean {
  return kind === 'step' || kind === 'message';
}

function isEndOf({ id }: ReplayedTurn, event: Event): boolean {
  return event.id === `${id}:end`;
}

function timeOf({ began, ended, receipts }: ReplayedTurn, step: number): number {
  const steps = receipts.at(-1)?.step ?? 1;
  return Math.round(began + ((ended - began) * (step - 1)) / steps);
}

function render(
  view: View,
  { receipt, baseline, runtime }: { receipt: PromptReceipt; baseline: FrozenBaseline; runtime: AgentRuntime },
): Pick<ReplayedCall, 'prompt' | 'whole'> {
  const fork = forkView(view);
  const whole = buildPrompt({
    view: fork,
    conversation: receipt.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source: baseline.id },
    step: receipt.step,
  });
  const prompt = asSent(whole, fork, receipt);
  const { turn, step } = receipt;
  return { prompt, whole: receipt.delta ? { ...whole, turn, step } : prompt };
}
