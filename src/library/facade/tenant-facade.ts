import * as z from 'zod';
import { setImmediate } from 'node:timers/promises';
import {
  resolveAgent,
  type ConversationDeps,
  createParticipantsCache,
  unroutedRecipient,
} from '../../actors/conversations/messages.ts';
import { conversationState, waitUntilRest, workIn } from '../../actors/conversations/conversation-state.ts';
import { deleteConversation, readTree } from '../../actors/conversations/delete-conversation.ts';
import type { AgentRuntime, AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import { readPages } from '../../actors/log/read-log.ts';
import { listTasks } from '../../actors/log/tasks.ts';
import { isDecidable } from '../../actors/tasks/task-commands.ts';
import type { Workflow } from '../../actors/attempt/feature-types.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  DEFAULT_TENANT,
  type Event,
  TenantId,
  type AgentId,
  type Note,
  Author,
  checkOptions,
} from '../../events/index.ts';
import { listConversations, withKinds } from './list-conversations.ts';
import { exportConversation } from '../import/troupe-format.ts';
import { actorStatuses } from '../inspect/actor-status.ts';
import { cacheCost, traceTurn } from '../inspect/cache-cost.ts';
import { inspectPrompt, nextPrompt, sentPrompt } from '../inspect/prompts.ts';
import { type ConversationKey, PAGE_BYTES } from '../../store/store.ts';
import type { Troupe, WorkflowInfo, Answer, AskOptions, Asked, FollowOptions, AgentInfo } from '../troupe.ts';
import { conversationHandle } from '../conversation-handle.ts';
import { executeCommand } from './execute-command.ts';
import { conversationId, readCommand, readMessage, mintId } from './parse-input.ts';
import { readQueues, readStuck } from './queues.ts';
import { readAttachment, sendMessage } from './send-message.ts';
import { passageRepository, standingRepository } from './inbox-repositories.ts';
import { toolPlace } from '../../actors/turn/run-calls.ts';
import { findConversation, type TenantContext, type FacadeParts } from './tenant-context.ts';
import { ask, type CostOf, addressed, messageFrom, nobodyAnswers } from '../asking/ask.ts';
import { followConversation } from '../asking/follow.ts';
import { costOf } from '../../providers/prices.ts';
import type { Clock } from '../../base/clock.ts';
import type { Router } from '../../queue/router.ts';
import { LRUCache } from 'lru-cache';
import { Watchers } from './live.ts';

function tenantFacade(context: TenantContext): Troupe {
  const { parts, tenant, agents, forTenant, close } = context;
  const { credentials, integrations } = parts;
  const troupe: Troupe = {
    tenant,
    agents,
    workflows: (parts.workflows ?? []).map(workflowInfo),
    forTenant,
    cardKey: parts.cardKey,
    keys: credentials.keysOf(tenant),
    authenticate: (credential) => credentials.authenticate(credential),
    people: parts.profilesOf(tenant),
    standings: standingRepository(context),
    passages: passageRepository(context),
    webhooks: integrations.webhooksOf(tenant),
    doors: parts.doors ?? [],
    get statusUrl() {
      return parts.status?.url ?? null;
    },
    agentKeys: integrations.agentKeys,
    nostr: () => (tenant === DEFAULT_TENANT ? integrations.nostr() : null),
    send: async (conversation, message) => sendMessage(context, conversation, readMessage(message)),
    watch(watcher, of = {}) {
      if (typeof watcher !== 'function')
        throw new TroupeError('event_invalid', 'watcher: give a function that takes what happens');
      checkOptionsOf('watch', of);
      return context.watchers.add(tenant, of.conversation ?? null, watcher);
    },
    conversation: (id) => conversationHandle(troupe, conversationId(id)),
    ...askingMethods(context, () => troupe),
    ...readingMethods(context),
    ...changingMethods(context),
    ...promptMethods(context),
    ...operatorMethods(context),
    close,
    [Symbol.asyncDispose]: close,
  };
  return troupe;
}

function readingMethods(context: TenantContext) {
  const { parts, tenant } = context;
  const { deps } = parts;
  const { store, taskFolds } = deps;

  return {
    async conversations(limit = 200) {
      checkOptionsOf('conversations', { limit });
      return withKinds(store, tenant, await store.conversations(tenant, limit));
    },
    async listConversations(query) {
      checkOptionsOf('listConversations', query);
      return listConversations(store, tenant, query);
    },
    async state(conversation) {
      const log = await findConversation(context, conversation);
      const { fold } = await taskFolds.of(log);
      return { id: log.conversation, head: log.head, ...conversationState(fold) };
    },
    async events(conversation, options = {}) {
      checkOptionsOf('events', options);
      const { after = 0, limit = 500, maxBytes = PAGE_BYTES } = options;
      const log = await findConversation(context, conversation);
      const range = { after, limit, maxBytes: Math.min(maxBytes, PAGE_BYTES) };
      const events = await store.read(log, range);
      // An embedded store answers at once, so a caller that pages through a long log must yield to others.
      if ((events.at(-1)?.seq ?? log.head) < log.head) await setImmediate();
      return { events, head: log.head };
    },
    async attachment(conversation, seq, index) {
      const log = await findConversation(context, conversation);
      const [event] = await store.read(log, { after: seq - 1, limit: 1 });
      const found = event?.seq === seq ? await readAttachment(store, event, index) : null;
      if (found) return found;
      const message = `event ${seq} has no attachment ${index}`;
      throw new TroupeError('event_invalid', message, { path: 'index' });
    },
    verify: async (conversation, { after = 0 } = {}) =>
      store.verify(await findConversation(context, conversation), { after }),
    actors: async (conversation) => actorStatuses(deps, await findConversation(context, conversation)),
    unaddressed: (conversation) => unaddressedIn(context, conversation),
    async tasks(conversation, options) {
      checkOptionsOf('tasks', options);
      const log = await findConversation(context, conversation);
      const { open, as } = options ?? {};
      if (!as) return listTasks(taskFolds, log, { open });
      const [trust, now] = [parts.trust ?? null, deps.clock.now()];
      return listTasks(taskFolds, log, {
        open,
        decidable: (task, isArchived) => isDecidable(task, as, { trust, isArchived, now }),
      });
    },
    async checkpoint(conversation, reader) {
      const log = await findConversation(context, conversation);
      const found = await deps.checkpoints?.load(log, `reader:${reader}`);
      return found ? { seq: found.seq, content: found.parts[0] } : null;
    },
    async saveCheckpoint(conversation, reader, { seq, content }) {
      const log = await findConversation(context, conversation);
      const place = await deps.checkpoints?.mark(log, seq);
      if (place) deps.checkpoints?.save(log, `reader:${reader}`, place, [content]);
    },
    async *export(conversation, { format = 'jsonl', threads = true, secrets = 'hidden' } = {}) {
      const root = await findConversation(context, conversation);
      const hide = secrets === 'kept' ? null : parts.hide;
      async function* shown(log: ConversationKey, upTo?: number): AsyncGenerator<readonly Event[]> {
        for await (const events of readPages(store, log, { after: 0, upTo })) yield hide?.(events) ?? events;
      }
      if (format === 'html') {
        const { exportHtml } = await import('../projection/render-html.ts');
        const { conversationCost } = await import('../inspect/conversation-cost.ts');
        const { total } = await conversationCost(deps, root.tenant, root.conversation);
        return yield* exportHtml(root.conversation, () => shown(root, root.head), total.usd);
      }
      const branches = threads ? await readTree(store, root) : [{ log: root }];
      for (const { log } of branches)
        yield* exportConversation(shown(log), log.conversation, hide ? 'hidden' : 'kept');
    },
  } satisfies Partial<Troupe>;
}

async function unaddressedIn(context: TenantContext, conversation: string): Promise<AgentId | null> {
  const log = await findConversation(context, conversation);
  return unroutedRecipient(context.conversations, await context.conversations.participantsCache.of(log));
}

function workflowInfo({ id, directive, steps }: Workflow): WorkflowInfo {
  return {
    id,
    directive: directive ?? null,
    steps: steps.map(({ id: step, agent }) => ({ id: step, agent })),
  };
}

function changingMethods(context: TenantContext) {
  const { parts, conversations, tenant } = context;
  const { deps, engine, tenants, workflows = [] } = parts;
  return {
    async command(given, author) {
      const { command, by } = readCommand(given, author);
      await tenants.add(tenant);
      const existing = (conversation: string) => findConversation(context, conversation);
      return executeCommand(
        {
          conversations,
          engine,
          tenant,
          workflows,
          commands: parts.commands,
          compacts: deps.features.compaction !== undefined,
          existing,
        },
        command,
        by,
      );
    },
    async delete(conversation, options) {
      checkOptionsOf('delete', options);
      const { exported } = options;
      const root = await findConversation(context, conversation);
      const deleted = await deleteConversation(deps, root, exported);
      conversations.participantsCache.forget(root);
      deps.forTools?.forget(root);
      await deps.store.scrub();
      return deleted;
    },
    async erase(request) {
      checkOptionsOf('erase', request);
      const { erase } = await import('./erase.ts');
      return erase(context, request);
    },
    async import(chunks, request) {
      await tenants.add(tenant);
      const { importInto } = await import('./import-into.ts');
      return importInto(deps, tenant, chunks, request);
    },
  } satisfies Partial<Troupe>;
}

function promptMethods(context: TenantContext) {
  const { parts, tenant } = context;
  const { deps } = parts;

  async function findAgent(conversation: string, agent: string): Promise<[ActorAddress, AgentRuntime]> {
    const id = conversationId(conversation);
    const address = { tenant, conversation: id, agent: resolveAgent(deps.agents, agent) };
    const runtime = deps.agents.get(address.agent);
    if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`);
    await findConversation(context, conversation);
    return [address, runtime];
  }

  return {
    async prompt(conversation, agent) {
      const [address, runtime] = await findAgent(conversation, agent);
      return inspectPrompt(deps, address, runtime, await nextPrompt(deps, address, runtime));
    },
    async promptOf(turn, step) {
      const prompt = await sentPrompt(deps, tenant, turn, step);
      const [address, runtime] = await findAgent(prompt.conversation, prompt.agent);
      return inspectPrompt(deps, address, runtime, prompt);
    },
    async diff(a, b, steps = {}) {
      const { diffTurns } = await import('../inspect/compare-turns.ts');
      return diffTurns(deps, tenant, [a, b], steps);
    },
    async compare(a, b) {
      const { compareTurns } = await import('../inspect/compare-turns.ts');
      return compareTurns(deps, tenant, [a, b]);
    },
    async cost(conversation) {
      const { conversationCost } = await import('../inspect/conversation-cost.ts');
      const { conversation: id } = await findConversation(context, conversation);
      return conversationCost(deps, tenant, id);
    },
    async cacheCost(conversation, agent, options) {
      const [address, runtime] = await findAgent(conversation, agent);
      return cacheCost(deps, address, runtime, options);
    },
    trace: (turn) => traceTurn(deps, tenant, turn),
  } satisfies Partial<Troupe>;
}

function operatorMethods(context: TenantContext) {
  const { parts, tenant, closed } = context;
  const { deps, waits } = parts;
  const { store, router, clock } = deps;
  return {
    queues: ({ own = false } = {}) =>
      readQueues(deps, { tenant, own }, { heard: parts.live.running(), waits }),
    stuck: (query = {}) => readStuck(deps, tenant, parts.live.running(), query),
    budgets: async ({ conversation, agent } = {}) =>
      deps.features.budget?.report(tenant, {
        now: clock.now(),
        ...(conversation !== undefined && { root: conversationId(conversation) }),
        ...(agent !== undefined && { agent: resolveAgent(deps.agents, agent) }),
      }) ?? [],
    async health() {
      const [stored, queued] = await Promise.all([
        okOrProblem(Promise.all([store.check(), store.conversations(tenant, 1)])),
        okOrProblem(router.check()),
      ]);
      return { store: stored, queue: queued };
    },
    async idle(options = {}) {
      checkOptionsOf('idle', options);
      const { conversation } = options;
      if (conversation === undefined) return waitUntilQuiet(router, { clock, closed });
      const log = await findConversation(context, conversation);
      // Records do not show which turns wait for the clock.
      if (clock.moved) return waitUntilQuiet(router, { clock, closed });
      const returnPlace = await toolPlace()?.lend();
      try {
        await waitUntilRest(deps, log, closed);
      } finally {
        await returnPlace?.();
      }
    },
  } satisfies Partial<Troupe>;
}

async function okOrProblem(check: Promise<unknown>): Promise<string> {
  return check.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

/** The methods that wait for what follows from a message. `itself`: the troupe that they belong to. */
function askingMethods(context: TenantContext, itself: () => Troupe) {
  const { parts, tenant, closed } = context;
  const { clock, agents } = parts.deps;

  const priced: CostOf = (agent, usage) => {
    const price = agents.get(agent as AgentId)?.price ?? null;
    return price && costOf(usage, price);
  };

  async function* answering(
    conversation: string,
    asked: Asked,
    options: AskOptions,
  ): AsyncGenerator<Note, Answer> {
    // Opened before the message wakes the agents that are to answer.
    const place = toolPlace();
    const returnPlace = await place?.lend();
    try {
      const { event } = await itself().send(conversation, addressed(messageFrom(asked), context.agents));
      if (event.to.length === 0) throw nobodyAnswers();
      if (place) refuseToAskItself(place.address, event);
      return yield* answersTo(event, options);
    } finally {
      await returnPlace?.();
    }
  }

  async function* answersTo(event: Event, { signal, timeoutMs }: AskOptions): AsyncGenerator<Note, Answer> {
    const isOver = new AbortController();
    const late = new AbortController();
    if (timeoutMs !== undefined)
      void clock.sleep(timeoutMs, isOver.signal, 'upkeep').then(() => late.abort());
    const ends = AbortSignal.any([closed, late.signal, ...(signal ? [signal] : [])]);
    const root = { tenant, conversation: event.conversation };
    const work = () => workIn(parts.deps, root, { after: event.seq });
    const stuck = async () =>
      (await itself().stuck({ afterMs: 0, among: [event.conversation] })).stuck.filter(({ conversation }) =>
        isWithin(conversation, event.conversation),
      );
    try {
      return yield* ask(event, { troupe: itself(), clock, work, stuck, signal: ends }, priced);
    } finally {
      isOver.abort();
    }
  }

  async function* rejoined(
    conversation: string,
    seq: number,
    options: AskOptions,
  ): AsyncGenerator<Note, Answer> {
    const { events } = await itself().events(conversation, { after: seq - 1, limit: 1 });
    const [event] = events;
    if (!event || event.seq !== seq || !wakesAgents(event)) throw notRejoinable(conversation, seq);
    return yield* answersTo(event, options);
  }

  return {
    stream(conversation, asked, options = {}) {
      checkOptionsOf('stream', options);
      return answering(conversation, asked, options);
    },
    rejoin(conversation, seq, options = {}) {
      checkOptionsOf('rejoin', options);
      return rejoined(conversation, seq, options);
    },
    async ask(conversation, asked, options = {}) {
      checkOptionsOf('ask', options);
      const going = answering(conversation, asked, options);
      let next = await going.next();
      while (!next.done) next = await going.next();
      return next.value;
    },
    follow(conversation, options = {}) {
      checkOptionsOf('follow', options);
      return followed(itself(), conversation, { ...options, clock, closed });
    },
  } satisfies Partial<Troupe>;
}

async function* followed(
  troupe: Troupe,
  conversation: string,
  {
    after = 0,
    signal,
    clock,
    closed,
  }: FollowOptions & { clock: TenantContext['parts']['deps']['clock']; closed: AbortSignal },
): AsyncGenerator<Event, void> {
  const ends = signal ? AbortSignal.any([signal, closed]) : closed;
  const frames = followConversation(conversationId(conversation), after, { troupe, clock, signal: ends });
  for await (const frame of frames) if (frame.type === 'event') yield frame.event;
}

/** Refuses a question of a tool to its own agent: it would wait for the end of its own turn. */
function refuseToAskItself(own: ActorAddress, { tenant, conversation, to }: Event): void {
  if (own.tenant !== tenant || own.conversation !== conversation || !to.includes(own.agent)) return;
  const message = `a tool of @${own.agent} asks @${own.agent} itself in ${conversation}: it would wait for its own turn. The message is stored and is answered after this turn; to ask others, name them in "to"`;
  throw new TroupeError('command_refused', message, { agent: own.agent, conversation });
}

function notRejoinable(conversation: string, seq: number): TroupeError {
  return new TroupeError(
    'event_invalid',
    `seq: "${conversation}" has no event ${seq} that agents are to answer; give the seq of a message, or of what a command has recorded`,
    { path: 'seq' },
  );
}

/** A conversation, or a thread of its tasks. */
function isWithin(conversation: string, root: string): boolean {
  return conversation === root || conversation.startsWith(`${root}.`);
}

/** A directive that begins a run has no addressees, but its steps wake agents. */
function wakesAgents({ to, kind }: Event): boolean {
  return to.length > 0 || kind === 'run.directive';
}

const Signal = z.instanceof(AbortSignal, { error: 'give the signal of an AbortController' }).optional();
/** Longer timers overflow and fire at once. */
const MAX_MS = 2 ** 31 - 1;
const Wait = z.strictObject({ signal: Signal, timeoutMs: z.number().positive().max(MAX_MS).optional() });
const Seq = z.int().nonnegative().optional();

/** Schemas of the options of each method, for programs without types. */
const OPTIONS = {
  ask: Wait,
  stream: Wait,
  rejoin: Wait,
  follow: z.strictObject({ after: Seq, signal: Signal }),
  events: z.strictObject({
    after: Seq,
    limit: z.int().positive().optional(),
    maxBytes: z.number().positive().optional(),
  }),
  conversations: z.strictObject({ limit: z.int().positive() }),
  listConversations: z.strictObject({
    limit: z.int().positive().optional(),
    before: z.string().optional(),
    among: z.array(z.string()).readonly().optional(),
    kind: z.enum(['conversation', 'thread']).optional(),
  }),
  tasks: z.strictObject({ open: z.boolean().optional(), as: Author.optional() }),
  delete: z.strictObject({
    exported: z.union([z.int().nonnegative(), z.literal('none')], {
      error: 'say how many events you have exported, or "none"',
    }),
  }),
  erase: z.strictObject({
    person: z.string({ error: 'give the id of the person' }).min(1).max(128).optional(),
    conversation: z.string().optional(),
    tenant: z.string().optional(),
    by: Author.optional(),
    onProgress: z.function().optional(),
  }),
  idle: z.strictObject({ conversation: z.string().optional() }),
  watch: z.strictObject({ conversation: z.string().optional() }),
} as const satisfies Record<string, z.ZodType>;

/** Throws `event_invalid`, which names the method, every wrong option and what to give instead. */
function checkOptionsOf(method: keyof typeof OPTIONS, options: unknown = {}): void {
  checkOptions(OPTIONS[method], options, method, 'event_invalid');
}

/** The first checks are one turn of the event loop apart, later ones `PAUSE_MS`. */
const QUICK_CHECKS = 50;
const PAUSE_MS = 5;
const UNANSWERED_PAUSE_MS = 100;
/** Time without an answer after which the queue counts as unavailable: a busy process may fail single checks. */
const PATIENCE_MS = 10_000;

/**
 * Resolves when no wake is waiting or running, or all of them wait for a stopped clock. Throws `queue_unavailable` if
 * the queue has not answered for 10 s, or is unavailable after `closed` aborts.
 */
export async function waitUntilQuiet(
  router: Pick<Router, 'depth'>,
  { clock, closed }: { clock: Clock; closed: AbortSignal },
): Promise<void> {
  let answeredAt = clock.monotonic();
  for (let checks = 0; ; checks++) {
    let pauseMs = checks < QUICK_CHECKS ? 0 : PAUSE_MS;
    try {
      const { waiting, active, delayed } = await router.depth();
      if (waiting + active + delayed <= (clock.moved?.pauses() ?? 0)) return;
      answeredAt = clock.monotonic();
    } catch (error) {
      const isUnavailable = error instanceof TroupeError && error.code === 'queue_unavailable';
      if (!isUnavailable || closed.aborted || clock.monotonic() - answeredAt > PATIENCE_MS) throw error;
      pauseMs = UNANSWERED_PAUSE_MS;
    }
    await clock.sleep(pauseMs);
  }
}

/** Maximum of cached facades. They have no state, so a new one costs little. */
const MAX_TENANT_FACADES = 1_000;

/**
 * The public interface of a running troupe. It checks input, resolves names, and leaves the work to the engine. One engine
 * serves all tenants. Each facade belongs to one tenant, and none of its methods reaches another.
 */
export function createTroupeFacade(parts: FacadeParts): Troupe {
  const { deps, engine, trust = null, fallback } = parts;
  const closed = new AbortController();
  let closing: Promise<void> | null = null;
  async function close(): Promise<void> {
    closed.abort();
    await engine.stop();
    await parts.release();
  }

  const conversations: ConversationDeps = {
    deps,
    engine,
    participantsCache: createParticipantsCache(deps.log, deps.checkpoints),
    trust,
    fallback,
    sticks: parts.sticks,
    router: parts.messageRouter ?? null,
    newId: mintId,
  };
  const shared = {
    parts,
    conversations,
    watchers: new Watchers({ ...parts, log: deps.log, onWarning: deps.onWarning }),
    agents: [...deps.agents.values()].map((runtime) => agentInfo(deps.agents, runtime, fallback)),
    closed: closed.signal,
    forTenant,
  };
  const facades = new LRUCache<TenantId, Troupe>({ max: MAX_TENANT_FACADES });

  function forTenant(name: string): Troupe {
    const tenant = parseTenant(name);
    const known = facades.get(tenant);
    if (known) return known;
    const isRoot = tenant === DEFAULT_TENANT;
    const closeTenant = () => (isRoot ? (closing ??= close()) : Promise.resolve());
    const facade = tenantFacade({ ...shared, tenant, close: closeTenant });
    facades.set(tenant, facade);
    return facade;
  }
  return forTenant(DEFAULT_TENANT);
}

/** The tools are those at the time of reading: tools of an MCP server may come later. */
function agentInfo(
  agents: AgentRegistry,
  { profile, capabilities, pubkey, price }: AgentRuntime,
  fallback: AgentId | null,
): AgentInfo {
  const { id, name, role, description, provider, model, formerly } = profile;
  return {
    id,
    ...(formerly && { aliases: formerly }),
    name,
    role,
    description,
    capabilities,
    provider,
    model,
    pubkey,
    price,
    isDefault: id === fallback,
    get tools() {
      return [...(agents.get(id)?.tools.keys() ?? [])];
    },
  };
}

function parseTenant(text: string): TenantId {
  const parsed = TenantId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new TroupeError('event_invalid', `"${text}" is not a valid tenant id`, { path: 'tenant' });
}
