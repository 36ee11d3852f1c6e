import { lastingCount, locateBreak } from '../../context/cache/locate-break.ts';
import { estimateTokens } from '../../context/budget/tokens.ts';
import { promptChain } from '../../context/build-prompt.ts';
import type { Steps } from '../../context/text/steps.ts';
import { chainSteps } from '../../context/view/view.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type AgentId,
  type Cut,
  eventOf,
  parseTurnId,
  type PromptMessage,
  type PromptReceipt,
  type PromptRecord,
  turnId,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { inSlices } from '../../actors/log/read-log.ts';
import type { AgentRuntime } from '../../actors/actor/agent-runtime.ts';
import { readReceipts, sentPrompt } from './prompts.ts';

/** Facts about a prompt, shown beside it. */
export interface Inspection {
  /**
   * The part at the beginning that the previous prompt of the same agent had too: a warm cache holds it. Empty if the
   * log does not determine what was sent. Never more tokens than the prompt has.
   */
  cached: { messages: number; tokens: number };
  /** The size in tokens at which the next compaction starts, and the tokens left until then. */
  compaction: { at: number; left: number };
  /** @deprecated The same as `compaction`. It will be removed in the next version. */
  relief: { at: number; left: number };
  /** The compactions that the prompt shows. */
  cuts: CutDetail[];
}

/** A compaction in force, with details from the log. */
export interface CutDetail extends Cut {
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
  prompt: P,
): Promise<P & Inspection> {
  const [cached, cuts] = await Promise.all([
    // Events of a running turn that the log lacks are missing in the messages: they are not what was sent.
    prompt.verified === false ? NOTHING : cachedOf(deps, address, prompt),
    Promise.all(prompt.cuts.map((cut) => detailOf(deps, address, cut))),
  ]);
  const { window, reserved, estimate } = prompt.tokens;
  const at = Math.ceil((window - reserved) * runtime.policy.trigger);
  const compaction = { at, left: Math.max(0, at - estimate) };
  return { ...prompt, cached, compaction, relief: compaction, cuts };
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

/** The prompt of the previous model call. */
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

/** A share of the counted tokens: the record has sums for layers only. */
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
