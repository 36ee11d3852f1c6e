import { LRUCache } from 'lru-cache';
import { baselineBody, baselineDrift, type BaselineText, textsInMode } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  agentAuthor,
  type BaselineBody,
  type EventDraft,
  type EventId,
  eventOf,
  type Mode,
  runtimeId,
  SYSTEM_AUTHOR,
  ToolSpec,
} from '../../events/index.ts';
import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import type {
  AgentRegistry,
  FrozenBaseline,
  AgentRuntime,
  WrittenInstructions,
} from '../actor/agent-runtime.ts';
import type { LiveActor } from '../actor/registry.ts';

/**
 * The baseline for this turn. An unchanged baseline is used as it was frozen. A changed one is logged with its reason, because
 * it invalidates the cache of everything after it. The first one is logged together with the agent's joining.
 */
export async function freezeBaseline(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
  live: LiveActor,
): Promise<FrozenBaseline> {
  const {
    baseline: frozen,
    directions: { mode },
  } = live.view;
  const warm = live.baseline;
  if (frozen && warm?.id === frozen.id && isUnchangedFor(warm, runtime, mode)) return warm;
  const texts = textsInMode(runtime.baseline, mode);
  // Stored even for an unchanged baseline, because an imported log has baselines without their texts.
  const all = [...texts, ...texts.flatMap(({ given }) => given ?? [])];
  await storeBodies(deps, address, runtime, all);
  const { baseline, reason } = await baselineFor({ store: deps.store, address, runtime }, frozen, {
    mode,
    warm,
  });
  live.baseline = {
    ...baseline,
    unchangedFor: { baseline: runtime.baseline, profile: runtime.profile, mode },
  };
  if (reason === null) return live.baseline;

  const { id, body } = baseline;
  const author = agentAuthor(runtime.profile);
  const drafts: EventDraft[] = [{ id, author, to: [], kind: 'baseline', body }];
  // The agent may have been added before its first turn.
  if (!frozen && !live.tasks.joined.has(address.agent)) drafts.unshift(joined(address, runtime));
  await live.lease?.hold();
  await deps.log.append(address, drafts);
  live.view.baseline = { id, body };
  return baseline;
}

function isUnchangedFor(
  { unchangedFor: known }: FrozenBaseline,
  { baseline, profile }: AgentRuntime,
  mode: Mode | null,
): boolean {
  return known?.baseline === baseline && known.profile === profile && known.mode === mode;
}

/** The baseline to use: `frozen` with its texts if it is unchanged (`reason` is null), otherwise the next one. */
export async function baselineFor(
  { store, address, runtime }: { store: Store; address: ActorAddress; runtime: AgentRuntime },
  frozen: { id: EventId; body: BaselineBody } | null,
  { mode = null, warm = null }: { mode?: Mode | null; warm?: FrozenBaseline | null } = {},
): Promise<{ baseline: FrozenBaseline; reason: string | null }> {
  const drift = baselineDrift(frozen?.body ?? null, runtime.profile, runtime.baseline, mode);
  if (frozen && drift === null) {
    const kept = warm?.id === frozen.id ? warm : await withTexts(store, address, runtime, frozen);
    if (kept) return { baseline: kept, reason: null };
  }
  const epoch = (frozen?.body.epoch ?? 0) + 1;
  const reason = drift ?? 'its texts are not in this store';
  const texts = textsInMode(runtime.baseline, mode);
  const body = baselineBody(runtime.profile, texts, { epoch, reason });
  const id = runtimeId('baseline', address.agent, epoch);
  return { baseline: { id, body, texts, tools: runtime.profile.tools }, reason };
}

/** The baseline of an old prompt. Throws `store_corrupt` if it or one of its texts is missing. */
export async function readBaseline(
  store: Store,
  address: ActorAddress,
  runtime: AgentRuntime,
  id: string,
): Promise<FrozenBaseline> {
  const event = await store.readById(address, id);
  const body = event && eventOf(event, 'baseline')?.body;
  const baseline = body && (await withTexts(store, address, runtime, { id: event.id, body }));
  if (!baseline) throw new TroupeError('store_corrupt', `baseline ${id} is not in the store`, { id });
  return baseline;
}

/** A baseline with its texts. Most are those of the runtime; others are read by their hash. Null if one is missing. */
async function withTexts(
  store: Store,
  { tenant }: ActorAddress,
  runtime: AgentRuntime,
  { id, body }: { id: EventId; body: BaselineBody },
): Promise<FrozenBaseline | null> {
  const known = [...textsInMode(runtime.baseline, 'agent'), ...textsInMode(runtime.baseline, 'chat')];
  const texts: BaselineText[] = [];
  let tools = runtime.profile.tools;
  for (const { name, hash, tokens, sources } of body.layers) {
    const same = known.find((layer) => layer.name === name && layer.hash === hash);
    const text = same?.text ?? (await store.readBody(tenant, hash));
    if (text === null) return null;
    const layer = name as BaselineText['name'];
    texts.push({ name: layer, hash, tokens: () => tokens, text, ...(sources && { sources }) });
    if (name === 'tools' && !same) tools = text === '' ? [] : ToolSpec.array().parse(JSON.parse(text));
  }
  return { id, body, texts, tools };
}

/**
 * Hashes of the texts of the agents file, which all conversations use and which contain nobody's words. Erasures keep them,
 * because processes store each only once. Texts that functions return are not included; they are stored with every baseline.
 */
export function fixedTexts(agents: AgentRegistry): ReadonlySet<string> {
  const fixed = [...agents.values()].filter(({ written }) => !written);
  const texts = fixed
    .flatMap(({ baseline, inThread }) => [baseline, ...(inThread ? [inThread.baseline] : [])])
    .flatMap((baseline) => [...textsInMode(baseline, 'agent'), ...textsInMode(baseline, 'chat')]);
  return new Set(texts.flatMap(({ hash, given }) => [hash, ...(given ? [given.hash] : [])]));
}

/** To be called after an erasure, which may remove texts of former definitions, so that they are stored again when needed. */
export function forgetStoredTexts(store: Store): void {
  stored.delete(store);
}

const KNOWN_STORED = 10_000;

const stored = new WeakMap<Store, LRUCache<string, true>>();

async function storeBodies(
  deps: EngineDeps,
  { tenant }: ActorAddress,
  { written }: AgentRuntime,
  texts: readonly { hash: string; text: string }[],
): Promise<void> {
  const known = stored.get(deps.store) ?? new LRUCache<string, true>({ max: KNOWN_STORED });
  stored.set(deps.store, known);
  const missing = written ? texts : texts.filter(({ hash }) => !known.get(`${tenant}/${hash}`));
  if (missing.length === 0) return;
  const now = deps.clock.now();
  await Promise.all(missing.map(({ hash, text }) => deps.store.putBody(tenant, hash, text, now)));
  for (const { hash } of missing) known.set(`${tenant}/${hash}`, true);
}

function joined(address: ActorAddress, runtime: AgentRuntime): EventDraft {
  return {
    id: runtimeId('joined', address.agent),
    author: SYSTEM_AUTHOR,
    to: [],
    kind: 'membership.changed',
    body: { change: 'joined', agent: address.agent, policy: runtime.profile.join },
  };
}

const DEADLINE_MS = 10_000;
const MAX_LENGTH = 100_000;

type Deps = Pick<EngineDeps, 'store' | 'clock' | 'redaction' | 'app'>;

/**
 * The runtime with the present text of its files and of instructions that a function of the application returns. The function
 * is called when a baseline is made. Until the next baseline, the text of the present one is used.
 */
export async function presentRuntime(
  deps: Deps,
  address: ActorAddress,
  runtime: AgentRuntime,
  { frozen, mode, isThread }: { frozen: BaselineBody | null; mode: Mode | null; isThread: boolean },
): Promise<AgentRuntime> {
  const known = isThread && runtime.inThread ? { ...runtime, ...runtime.inThread } : runtime;
  const present = known.readBaseline ? { ...known, baseline: await known.readBaseline() } : known;
  const { written } = present;
  if (!written) return present;
  const hash = frozen?.layers.find(({ name }) => name === 'persona')?.sources?.['instructions'];
  const kept = hash === undefined ? null : await deps.store.readBody(address.tenant, hash);
  // In chat mode the baseline has no instructions, so no text is kept.
  const unchanged = { ...present, baseline: written.baseline(kept ?? '') };
  if (frozen && baselineDrift(frozen, present.profile, unchanged.baseline, mode) === null) return unchanged;
  return { ...present, baseline: written.baseline(await textOf(deps, address, present, written)) };
}

/** Calls the function. Throws `config_invalid`, which makes the agent fail until it is resumed. */
async function textOf(
  { clock, redaction, app }: Deps,
  { tenant, conversation, agent }: ActorAddress,
  { profile }: AgentRuntime,
  { write }: WrittenInstructions,
): Promise<string> {
  const over = new AbortController();
  const wrong = (why: string, cause?: unknown) =>
    new TroupeError(
      'config_invalid',
      `instructions of @${agent}: the function ${why}; mend it, and resume the agent`,
      { agent, field: 'instructions' },
      { cause },
    );
  const late = clock.sleep(DEADLINE_MS, over.signal).then(() => {
    throw wrong(`took longer than ${DEADLINE_MS} ms`);
  });
  late.catch(() => undefined); // also when it has lost the race
  try {
    const text: unknown = await Promise.race([asked(), late]);
    if (typeof text !== 'string') throw wrong(`gave ${text === null ? 'null' : typeof text}, not a text`);
    if (text.length > MAX_LENGTH)
      throw wrong(`gave ${text.length} characters; at most ${MAX_LENGTH} are taken`);
    const where = { kind: 'baseline', author: agentAuthor(profile) } as const;
    return redaction?.text(text, where) ?? text.toWellFormed();
  } finally {
    over.abort();
  }

  async function asked(): Promise<unknown> {
    try {
      return await write({ tenant, conversation, agent, app });
    } catch (cause) {
      throw wrong(`failed: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
    }
  }
}
