import {
  beginTurnSteps,
  buildPrompt,
  createView,
  deltaOf,
  isAdopted,
  forkView,
  sessionMismatch,
  showWaitingSteps,
  type View,
} from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  type Event,
  parseTurnId,
  type PromptReceipt,
  type PromptRecord,
  type TenantId,
  turnId,
  type TurnId,
  type AgentId,
  type Cut,
  eventOf,
  type PromptMessage,
} from '../../events/index.ts';
import { forkTaskFold, newTaskFold, type TaskFold } from '../../machines/task-fold.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import type { TurnDeps } from '../../actors/attempt/turn-run.ts';
import { baselineFor, readBaseline, presentRuntime } from '../../actors/turn/baseline.ts';
import {
  inSlices,
  type ViewSource,
  readPages,
  catchUpInSlices,
  foldInSlices,
} from '../../actors/log/read-log.ts';
import type { AgentRuntime, AnswerSettings } from '../../actors/actor/agent-runtime.ts';
import { eventsAt } from '../../actors/log/read-turn.ts';
import { readUnheard } from '../../actors/turn/ask-model.ts';
import { liveItems, readFacts } from '../../actors/turn/turn-facts.ts';
import { viewAt } from './past-views.ts';
import { triggersIn, promptRulesOf } from '../../actors/attempt/pinned-turn.ts';
import { termsFor } from '../../actors/attempt/feature-types.ts';
import { answeredStep } from '../../actors/turn/judge-answer.ts';
import { lastingCount, locateBreak } from '../../context/cache/locate-break.ts';
import { estimateTokens } from '../../context/budget/tokens.ts';
import { promptChain } from '../../context/build-prompt.ts';
import type { Steps } from '../../context/text/steps.ts';
import { chainSteps } from '../../context/view/view.ts';

type ReadDeps = Pick<EngineDeps, 'store' | 'agents' | 'registry' | 'secretOf'> & {
  log: ViewSource;
  clock: Pick<EngineDeps['clock'], 'monotonic' | 'sleep'>;
};

/** Seqs of the events that the turn answers. Empty: none waits for the agent. */
interface Answering {
  inputs: readonly number[];
}

/** The prompt an agent would be sent now. Works on a copy of the view: nothing is sent, pinned or changed. */
export async function nextPrompt(
  deps: TurnDeps,
  address: ActorAddress,
  known: AgentRuntime,
): Promise<PromptRecord & Answering> {
  const warm = deps.registry.find(address);
  const folded = (warm?.isBeginning ? null : warm) ?? (await deps.coldViews?.of(address, address.agent));
  const view = folded ? forkView(folded.view) : createView(address.agent, deps.secretOf(address));
  const tasks = folded ? forkTaskFold(folded.tasks) : newTaskFold();
  // Without a given end, only the events that this process appended itself might be read.
  const head = await catchUpInSlices(deps, address, { view, tasks }, await deps.store.head(address));
  const record = await deps.store.readActor(address);
  const { mode } = view.directions;
  const runtime = await presentRuntime(deps, address, known, {
    frozen: view.baseline?.body ?? null,
    mode,
    isThread: tasks.thread !== null,
  });
  const { baseline, reason } = await baselineFor({ store: deps.store, address, runtime }, view.baseline, {
    mode,
  });
  if (!view.turn) {
    const folds = { view, tasks };
    await beginNextTurn(deps, { address, runtime, folds, record, head, baseline });
  }
  const prompt = buildPrompt({
    view,
    conversation: address.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source: reason === null ? baseline.id : 'next' },
    step: 1,
    model: await deps.models.get(address.tenant, runtime.profile),
  });
  return { ...asSession(view, runtime, record, { ...prompt, turn: null }), inputs: inputsOf(view) };
}

function inputsOf({ turn }: View): readonly number[] {
  return turn ? [...turn.inputs] : [];
}

/** Begins the turn that the waiting events would trigger. If none are waiting, shows the events that the agent has not seen. */
async function beginNextTurn(
  deps: TurnDeps,
  { address, runtime, folds, record, head, baseline }: NextTurn,
): Promise<void> {
  const { view, tasks } = folds;
  const inputs = triggersIn(folds, record?.processed ?? 0);
  const last = inputs.at(-1);
  if (!last) {
    if (runtime.profile.sees) view.sees = runtime.profile.sees;
    return inSlices(deps.clock, showWaitingSteps(view));
  }
  const facts = await readFacts(deps, { address, runtime }, folds, last);
  const steps = beginTurnSteps(view, {
    id: turnId(address, (record?.turnNo ?? 0) + 1),
    upTo: head,
    inputs: inputs.map((event) => event.seq),
    live: liveItems(inputs, folds, { runtime, baseline }, facts),
    join: tasks.joined.get(address.agent) ?? runtime.profile.join,
    baseline: baseline.id,
    ...promptRulesOf(runtime.profile),
  });
  await inSlices(deps.clock, steps);
}

interface NextTurn {
  address: ActorAddress;
  runtime: AgentRuntime;
  folds: { view: View; tasks: TaskFold };
  record: ActorRecord | null;
  /** The newest seq of the log. */
  head: number;
  baseline: Awaited<ReturnType<typeof baselineFor>>['baseline'];
}

/** The prompt as it would be sent to its session, under the present baseline, not the next one. */
function asSession(
  view: View,
  runtime: AgentRuntime,
  record: ActorRecord | null,
  whole: PromptRecord,
): PromptRecord {
  const session = record?.session;
  if (!session) return whole;
  const terms = termsFor(runtime, whole.layers[0]?.source ?? '', session);
  if (isAdopted(session) || sessionMismatch(view, session, terms)) return whole;
  const cursor = { before: record.cursor, after: whole.upTo };
  return { ...deltaOf(whole, view, session), cursor };
}

/**
 * A past prompt, rendered again from the log and checked against the hash of what was sent. Receipts hold ranges and
 * hashes, so a hundred turns do not store a hundred copies.
 */
export async function sentPrompt(
  deps: ReadDeps,
  tenant: TenantId,
  turn: string,
  step?: number,
): Promise<PromptRecord & Answering & { verified: boolean; erased?: true }> {
  const receipts = await readReceipts(deps, tenant, turn);
  const receipt = step === undefined ? receipts.at(-1) : receipts.find((each) => each.step === step);
  if (!receipt?.turn) {
    throw new TroupeError(
      'turn_unknown',
      `no prompt of turn "${turn}"${step ? ` step ${step}` : ''} was sent`,
      { turn },
    );
  }
  const address: ActorAddress = { tenant, conversation: receipt.conversation, agent: receipt.agent };
  const view = await viewAsSent(deps, address, receipt);
  const runtime = deps.agents.get(receipt.agent);
  if (!runtime) throw new TroupeError('agent_unknown', `agent "${receipt.agent}" is no longer defined`, {});
  const source = baselineOf(receipt);
  // The baseline event of a running turn's new epoch reaches the log only when the turn ends.
  const warm = deps.registry.find(address)?.baseline;
  const baseline = warm?.id === source ? warm : await readBaseline(deps.store, address, runtime, source);
  const prompt = buildPrompt({
    view,
    conversation: receipt.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source },
    step: receipt.step,
  });
  const sent = { ...asSent(prompt, view, receipt), inputs: inputsOf(view) };
  return sent.verified || !(await hasErased(deps, address, receipt)) ? sent : { ...sent, erased: true };
}

/** Whether words of an event in the prompt were erased. */
async function hasErased(deps: ReadDeps, address: ActorAddress, receipt: PromptReceipt): Promise<boolean> {
  for await (const events of readPages(deps.store, address, { after: 0 }))
    for (const { seq, turn, erased } of events)
      if (erased !== undefined && (seq <= receipt.upTo || turn === receipt.turn)) return true;
  return false;
}

/** The baseline event that was in force when the prompt was sent. */
export function baselineOf({ delta, layers }: PromptReceipt): string {
  return delta?.baseline ?? layers[0]?.source ?? '';
}

/** A prompt rendered again, checked against its receipt. */
export function asSent(
  whole: PromptRecord,
  view: View,
  receipt: PromptReceipt,
): PromptRecord & { verified: boolean } {
  const prompt = receipt.delta ? deltaOf(whole, view, receipt.delta) : whole;
  return { ...prompt, ...receipt, verified: prompt.chain === receipt.chain };
}

/** Receipts in the order of their steps. A turn that began with an approved call has none for its first step. */
export async function readReceipts(
  deps: Pick<EngineDeps, 'store'>,
  tenant: TenantId,
  turn: string,
): Promise<PromptReceipt[]> {
  const parts = parseTurnId(turn);
  if (!parts) throw new TroupeError('turn_unknown', `"${turn}" is not a turn id`, { turn });
  const receipts: PromptReceipt[] = [];
  for (let step = 1; ; step++) {
    const receipt = await deps.store.readReceipt(tenant, turn as TurnId, step);
    if (receipt) receipts.push(receipt);
    else if (step > 1) break;
  }
  // The receipt of a call whose model has not answered yet.
  const unheard = await readUnheard(deps.store, { tenant, ...parts });
  const isNext = unheard?.turn === turn && unheard.step > (receipts.at(-1)?.step ?? 0);
  return isNext ? [...receipts, unheard] : receipts;
}

/** The view at a step: the log up to the turn, then the events of the turn before the step was answered. */
async function viewAsSent(deps: ReadDeps, address: ActorAddress, receipt: PromptReceipt): Promise<View> {
  const view = await viewAt(deps, address, receipt.upTo);
  for await (const events of readPages(deps.store, address, { after: receipt.upTo })) {
    for (const event of events) {
      // This turn may have adopted a compaction that another agent made meanwhile.
      if (event.kind === 'compaction') await foldInSlices(deps.clock, view, event);
      if (event.turn !== receipt.turn) continue;
      if (isAnswer(event, receipt.step - 1) || isEnding(event)) return view;
      const folding = foldInSlices(deps.clock, view, event);
      if (folding) await folding;
    }
  }
  return view;
}

/** The logged answer to a step: a step after which the turn went on, or the reply. */
function isAnswer(event: Event, step: number): boolean {
  return event.kind === 'message' || (answeredStep(event) ?? -1) >= step;
}

function isEnding({ kind }: Event): boolean {
  return kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted';
}

/** Facts about a prompt, shown beside it. */
export interface Inspection {
  /**
   * The beginning that the previous prompt of the same agent had, too: a warm cache holds it. Empty if the log does not
   * determine what was sent. Never more tokens than the prompt has.
   */
  cached: { messages: number; tokens: number };
  /** The size in tokens at which the next compaction starts, and the tokens left until then. */
  compaction: { at: number; left: number };
  /** @deprecated The same as `compaction`. It will be removed in the next version. */
  relief: { at: number; left: number };
  /** The compactions that the prompt shows. */
  cuts: CutDetail[];
  /** The events that the turn answers, oldest first. Empty: none waits for the agent. */
  triggers: Trigger[];
  /** `manager`, `worker` or `peer`, as the agent is defined now. */
  role: AgentRuntime['profile']['role'];
  /** The settings of the model, as the agent is defined now. Null: the prompt was for another model. */
  settings: AnswerSettings | null;
}

/** An event that a turn answers. */
interface Trigger extends Pick<Event, 'id'> {
  /** Its place in the log. */
  seq: Event['seq'];
  /** What it is, such as `message`. */
  kind: Event['kind'];
  /** Who wrote it. */
  author: Event['author'];
}

/** A compaction in force, with details from the log. */
interface CutDetail extends Cut {
  /** The agent that needed the compaction, and the strategy that made it. */
  by?: AgentId;
  /** Whether a model wrote the summary. */
  strategy?: 'summary' | 'extraction';
  /** Number of texts that it shortened, and of steps of the turn that it shows as one text. */
  trimmed?: number;
  /** Number of steps of the turn that it shows as one text. */
  steps?: number;
}

export async function inspectPrompt<P extends PromptRecord & { verified?: boolean }>(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
  { inputs, ...answering }: P & Answering,
): Promise<P & Inspection> {
  const prompt = answering as unknown as P;
  const [cached, cuts, answered] = await Promise.all([
    // Events of a running turn that are not yet in the log are missing in these messages, so they are not what was
    // sent.
    prompt.verified === false ? NOTHING : cachedOf(deps, address, prompt),
    Promise.all(prompt.cuts.map((cut) => detailOf(deps, address, cut))),
    eventsAt(deps, address, inputs),
  ]);
  const { profile, settings } = runtime;
  const isSame = prompt.provider === profile.provider && prompt.model === profile.model;
  const triggers = answered.map(({ id, seq, kind, author }) => ({ id, seq, kind, author }));
  const { window, reserved, estimate } = prompt.tokens;
  const at = Math.ceil((window - reserved) * runtime.policy.trigger);
  const compaction = { at, left: Math.max(0, at - estimate) };
  const about = { triggers, role: profile.role, settings: isSame ? settings : null };
  return { ...prompt, cached, compaction, relief: compaction, cuts, ...about };
}

const NOTHING = { messages: 0, tokens: 0 };

async function cachedOf(
  deps: EngineDeps,
  address: ActorAddress,
  prompt: PromptRecord,
): Promise<Inspection['cached']> {
  const before = await receiptBefore(deps, address, prompt);
  if (!before?.turn || prompt.mode === 'delta') return NOTHING;
  // A prompt nearly always begins with all of the previous one; then nothing has to be rendered.
  const sent = prompt.messages.slice(0, before.count);
  if (isSameModel(before, prompt) && (await inSlices(deps.clock, chainOfAll(sent))) === before.chain) {
    return { messages: before.count, tokens: Math.min(before.tokens.total, prompt.tokens.total) };
  }
  const again = await sentPrompt(deps, address.tenant, before.turn, before.step).catch(orNull);
  // The log does not yet have all events of a turn that another process runs.
  if (!again?.verified) return NOTHING;
  const broke = locateBreak(again, prompt);
  const messages = broke ? (broke.message ?? 0) : lastingCount(again);
  return { messages, tokens: tokensOfFirst(messages, prompt) };
}

/** `chainOf`, for prompts of any length. */
function* chainOfAll([system, ...view]: readonly PromptMessage[]): Steps<string> {
  if (!system) return '';
  let chain = '';
  for (const message of view) chain = yield* chainSteps(chain, message);
  return promptChain(system, chain);
}

function orNull(error: unknown): null {
  if (error instanceof TroupeError && error.policy !== 'retry') return null;
  throw error;
}

/** Maximum number of skipped turns without a prompt, such as turns aborted at once. */
const MAX_LOOK_BACK = 8;

async function receiptBefore(
  deps: EngineDeps,
  address: ActorAddress,
  { turn, step }: PromptRecord,
): Promise<PromptReceipt | null> {
  const receiptsOf = (id: string) => readReceipts(deps, address.tenant, id);
  const sibling =
    turn === null || step === 1
      ? undefined
      : (await receiptsOf(turn)).findLast((receipt) => receipt.step < step);
  if (sibling) return sibling;
  const record = turn === null ? await deps.store.readActor(address) : null;
  const running = record?.turn ? 1 : 0;
  const last = turn === null ? (record?.turnNo ?? 0) + running : (parseTurnId(turn)?.number ?? 1) - 1;
  for (let number = last; number > Math.max(0, last - MAX_LOOK_BACK); number--) {
    const receipt = (await receiptsOf(turnId(address, number))).at(-1);
    if (receipt) return receipt;
  }
  return null;
}

function isSameModel(a: PromptReceipt, b: PromptReceipt): boolean {
  const toolsOf = ({ layers }: PromptReceipt) => layers.find(({ name }) => name === 'tools')?.hash;
  return a.provider === b.provider && a.model === b.model && toolsOf(a) === toolsOf(b);
}

/** Estimated as a share of the counted tokens: the record has sums only for layers. */
function tokensOfFirst(count: number, { messages, layers, tokens }: PromptRecord): number {
  if (count === 0) return 0;
  const fixed = layers
    .filter(({ stability }) => stability === 'epoch')
    .reduce((sum, layer) => sum + layer.tokens, 0);
  const weigh = (some: readonly PromptMessage[]) =>
    some.reduce((sum, message) => sum + estimateTokens(message.content) + 1, 0);
  const share = weigh(messages.slice(1, count)) / Math.max(1, weigh(messages.slice(1)));
  return Math.round(fixed + (tokens.total - fixed) * share);
}

async function detailOf({ store }: EngineDeps, address: ActorAddress, cut: Cut): Promise<CutDetail> {
  if (cut.kind === 'prune') return cut;
  const [baseline, compaction] = await Promise.all([
    store.readById(address, cut.event),
    cut.compaction ? store.readById(address, cut.compaction) : null,
  ]);
  const adopts = baseline && eventOf(baseline, 'baseline')?.body.adopts;
  const body = compaction && eventOf(compaction, 'compaction')?.body;
  return {
    ...cut,
    ...(body && { by: body.by, strategy: body.strategy }),
    ...(adopts?.pruned && { results: adopts.pruned.length }),
    ...(adopts?.trimmed && { trimmed: adopts.trimmed.length }),
    ...(adopts?.turn && { steps: adopts.turn.steps }),
  };
}
