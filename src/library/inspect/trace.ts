import { TroupeError } from '../../base/errors.ts';
import {
  type AgentId,
  type ConversationId,
  type Event,
  parseTurnId,
  type PromptReceipt,
  runtimeId,
  type TenantId,
  type TurnId,
  type Usage,
} from '../../events/index.ts';
import type { Store } from '../../store/store.ts';
import { costOf, priceOf } from '../../providers/prices.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { readReceipts } from './prompts.ts';
import { readPages } from '../../actors/log/read-log.ts';
import { readStep } from '../../actors/turn/step-journal.ts';

/** Steps, calls and times of a turn. */
export interface TurnTrace {
  /** Id of the turn. */
  turn: TurnId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** How it ended, or that it runs. */
  status: 'running' | 'done' | 'failed' | 'aborted';
  /** The inputs of the turn, then its own events. */
  events: Event[];
  /** One per model call, without messages. */
  prompts: TracedPrompt[];
  /** US dollars of the calls with a known price; null if there are none. */
  cost: number | null;
}

/** A receipt with the reported usage and its cost in US dollars. */
export type TracedPrompt = PromptReceipt & { cost: number | null };

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
  const { conversation, agent } = parts;
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
  // Today's price; for a model other than the agent's current one, the list price.
  const runtime = deps.agents.get(receipt.agent);
  const price = runtime?.profile.model === receipt.model ? runtime.price : priceOf(receipt.model);
  return { ...receipt, usage, cost: price && costOf(usage, price) };
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
