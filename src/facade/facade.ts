import { setImmediate } from 'node:timers/promises';
import { addressees, resolveAgent } from '../actors/conversations/address-message.ts';
import { actorStatuses } from '../inspect/actor-status.ts';
import { budgetReport } from '../actors/budget/report.ts';
import { cacheCost } from '../inspect/cache-cost.ts';
import { deleteConversation, readTree } from '../actors/conversations/delete-conversation.ts';
import type { ConversationDeps, MessageRouter } from '../actors/conversations/conversation-deps.ts';
import { receiveMessage } from '../actors/conversations/receive-message.ts';
import { conversationState } from '../actors/conversations/conversation-state.ts';
import { createParticipantsCache } from '../actors/conversations/participants-cache.ts';
import { isTrusted, type Trust } from '../actors/conversations/trust.ts';
import type { Engine } from '../actors/engine/engine.ts';
import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import { inspectPrompt } from '../inspect/inspect-prompt.ts';
import { isOurs } from '../actors/log/own-id.ts';
import type { AgentRuntime } from '../actors/engine/agent-runtime.ts';
import { readPages } from '../actors/log/read-pages.ts';
import { nextPrompt, sentPrompt } from '../inspect/prompts.ts';
import type { Workflow } from '../actors/workflows/start-run.ts';
import { answerByReply } from '../actors/tasks/execute-task-command.ts';
import { createTaskFolds, listTasks, type ReadTasks } from '../actors/tasks/read-tasks.ts';
import type { LogFolds } from '../actors/log/log-folds.ts';
import { refuseBusy } from '../actors/steering/busy-policy.ts';
import { traceTurn } from '../inspect/trace.ts';
import type { QueueWaits } from '../runtime/queue-waits.ts';
import { attachedBy, fetchAttachments, readAttachments } from './attachments.ts';
import { TroupeError } from '../errors.ts';
import {
  type ActorAddress,
  type AgentId,
  DEFAULT_TENANT,
  type Event,
  type EventDraft,
  type EventDraftOf,
  isRuntimeId,
  type StateNote,
  type StreamDelta,
  TenantId,
} from '../events/index.ts';
import { executeCommand } from './execute-command.ts';
import { listConversations } from './conversation-list.ts';
import type { Credentials, Tenants } from './credentials.ts';
import { exportConversation } from '../import/troupe-format.ts';
import { conversationId, mintId, parseDraft } from './parse-input.ts';
import type { SafeFetch } from '../net/safe-fetch.ts';
import type { PendingGuard } from './pending-guard.ts';
import type { Outside } from '../runtime/outside.ts';
import { type Appended, type ConversationKey, PAGE_BYTES } from '../store/store.ts';
import type { AgentInfo, Troupe } from '../troupe.ts';
import { waitUntilQuiet } from './wait-until-quiet.ts';
import { Watchers } from './watchers.ts';

/** What the facade stands on. */
export interface FacadeParts {
  deps: EngineDeps;
  engine: Engine;
  deltas: Set<(delta: StreamDelta) => void>;
  states?: Set<(note: StateNote) => void>;
  /** Of the wakes that this process took lately. */
  waits?: () => QueueWaits;
  /** Who answers what nobody is addressed by. */
  fallback: AgentId | null;
  /** Whose words wake agents; everybody's by default. */
  trust?: Trust;
  workflows?: readonly Workflow[];
  /** Finds who hears what names nobody, before the fallback does. */
  messageRouter?: MessageRouter | null;
  tenants: Tenants;
  pending?: PendingGuard;
  credentials: Credentials;
  /** For attachments by address; null: nothing is fetched. */
  fetch?: SafeFetch | null;
  outside: Pick<Outside, 'webhooksOf' | 'agentKeys' | 'nostr'>;
  release: () => Promise<void>;
}

/** Doors that are kept: they hold nothing, and making one anew costs little. */
const MAX_DOORS = 1_000;

/**
 * The public door: checks what comes in, finds what is meant, and leaves the work to the engine. One engine serves all
 * tenants; a door is that of one of them, and no method reaches beyond it.
 */
export function createTroupeFacade(parts: FacadeParts): Troupe {
  const { deps, engine, trust = null, fallback } = parts;
  const door: ConversationDeps = {
    deps,
    engine,
    participantsCache: createParticipantsCache(deps.log),
    trust,
    fallback,
    router: parts.messageRouter ?? null,
    newId: mintId,
  };
  const taskFolds = createTaskFolds(deps.store);
  let closing: Promise<void> | null = null;
  const closed = new AbortController();
  async function close(): Promise<void> {
    closed.abort();
    await engine.stop();
    await parts.release();
  }
  const infos = [...deps.agents.values()].map(agentInfo);
  const watchers = new Watchers({ ...parts, log: deps.log, onWarning: deps.onWarning });
  const doors = new Map<TenantId, Troupe>();
  const forTenant = (name: string): Troupe => {
    const tenant = tenantId(name);
    const known = doors.get(tenant);
    if (known) return known;
    if (doors.size >= MAX_DOORS) doors.clear();
    const isRoot = tenant === DEFAULT_TENANT;
    const made = tenantFacade(
      {
        ...parts,
        door,
        watchers,
        tenant,
        agents: infos,
        forTenant,
        taskFolds,
        closed: closed.signal,
      },
      () => (isRoot ? (closing ??= close()) : Promise.resolve()),
    );
    doors.set(tenant, made);
    return made;
  };
  return forTenant(DEFAULT_TENANT);
}

interface TenantParts extends FacadeParts {
  door: ConversationDeps;
  taskFolds: LogFolds<ReadTasks>;
  watchers: Watchers;
  tenant: TenantId;
  agents: readonly AgentInfo[];
  forTenant: (tenant: string) => Troupe;
  closed: AbortSignal;
}

function tenantFacade(parts: TenantParts, close: () => Promise<void>): Troupe {
  const { deps, engine, door, tenant, agents, forTenant, trust = null, workflows = [] } = parts;
  const { store, agents: registry, router, clock } = deps;

  async function existing(conversation: string): Promise<ConversationKey & { head: number }> {
    const id = conversationId(conversation);
    const head = await store.head({ tenant, conversation: id });
    if (head === 0) {
      throw new TroupeError('conversation_unknown', `there is no conversation "${conversation}"`, {
        conversation,
      });
    }
    return { tenant, conversation: id, head };
  }

  function addressOf(conversation: string, agent: string): ActorAddress {
    return { tenant, conversation: conversationId(conversation), agent: resolveAgent(registry, agent) };
  }

  async function memberIn(conversation: string, agent: string): Promise<[ActorAddress, AgentRuntime]> {
    const address = addressOf(conversation, agent);
    const runtime = registry.get(address.agent);
    if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`);
    await existing(conversation);
    return [address, runtime];
  }

  /**
   * Ids of the runtime are not for clients. What is answered: our own words, brought back by a gateway, as the event that
   * they are; and to the normal way of a retry (null) whatever a client of an earlier version has stored under one.
   */
  async function echoOf(target: ConversationKey, draft: EventDraft): Promise<Appended | null> {
    const event = await store.readById(target, draft.id);
    const same =
      event?.kind === 'message' &&
      draft.kind === 'message' &&
      event.author.id === draft.author.id &&
      event.body.content === draft.body.content &&
      draft.body.attachments === undefined;
    if (same) return { kind: 'exists', event };
    if (event && isOurs(event, draft)) return null;
    const message = `id "${draft.id}" belongs to the runtime, as all ids with a ":": leave the id out or choose one without`;
    throw new TroupeError('event_conflict', message, { id: draft.id });
  }

  async function* exported(conversation: string, { threads = false } = {}): AsyncGenerator<string> {
    const source = await existing(conversation);
    const branches = threads ? await readTree(store, source) : [{ log: source }];
    for (const { log: branch } of branches) yield* exportConversation(pages(branch), branch.conversation);
  }

  async function* pages(source: ConversationKey): AsyncGenerator<Event> {
    for await (const events of readPages(store, source, { after: 0 })) yield* events;
  }

  return {
    tenant,
    agents,
    forTenant,
    keys: parts.credentials.keysOf(tenant),
    authenticate: (credential) => parts.credentials.authenticate(credential),
    webhooks: parts.outside.webhooksOf(tenant),
    agentKeys: parts.outside.agentKeys,
    nostr: () => (tenant === DEFAULT_TENANT ? parts.outside.nostr() : null),
    async send(conversation, message) {
      const to = addressees(registry, message, null);
      const given = await fetchAttachments(message.attachments ?? [], parts.fetch ?? null);
      const { author } = message;
      const { attachments, bodies } = readAttachments(
        attachedBy({ attachments: given, author }, deps.redaction),
      );
      const parsed = parseDraft({
        id: message.id ?? mintId(),
        author: message.author,
        to,
        kind: 'message',
        body: { content: message.content, ...(attachments.length > 0 && { attachments }) },
        ...(message.replyTo !== undefined && { replyTo: message.replyTo }),
        ...(message.whileBusy !== undefined && { whileBusy: message.whileBusy }),
        ...(message.context?.attachments && { context: { attachments: message.context.attachments } }),
      });
      const draft = deps.redaction?.draft(parsed) ?? parsed;
      const target = { tenant, conversation: conversationId(conversation) };
      const echo = isRuntimeId(draft.id) ? await echoOf(target, draft) : null;
      if (echo) return echo;
      await parts.tenants.note(tenant);
      const appended = await receiveMessage(
        door,
        target,
        draft as EventDraftOf<'message'>,
        async (placed) => {
          await refuseBusy(deps, target, placed);
          await parts.pending?.(target, placed);
          // Before their event: who reads it finds them.
          for (const [hash, data] of bodies) await store.putBody(tenant, hash, data, clock.now());
        },
        { untrusted: message.untrusted === true },
      );
      const isHeard = isTrusted(trust, message.author) && message.untrusted !== true;
      if (isHeard) await answerByReply({ ...deps, trust }, target, appended.event);
      return appended;
    },
    conversations: (limit = 200) => store.conversations(tenant, limit),
    listConversations: (query) => listConversations(store, tenant, query),
    async conversation(conversation) {
      const source = await existing(conversation);
      const { book } = await parts.taskFolds.of(source);
      return { id: source.conversation, head: source.head, ...conversationState(book) };
    },
    async events(conversation, { after = 0, limit = 500, maxBytes = PAGE_BYTES } = {}) {
      const source = await existing(conversation);
      const range = { after, limit, maxBytes: Math.min(maxBytes, PAGE_BYTES) };
      const events = await store.read(source, range);
      // Whoever pages through a long log lets others have their turn: a store in this process answers at once.
      if ((events.at(-1)?.seq ?? source.head) < source.head) await setImmediate();
      return { events, head: source.head };
    },
    async actors(conversation) {
      return actorStatuses(deps, await existing(conversation));
    },
    tasks: async (conversation, options) => listTasks(parts.taskFolds, await existing(conversation), options),
    async prompt(conversation, agent) {
      const [address, runtime] = await memberIn(conversation, agent);
      return inspectPrompt(deps, address, runtime, await nextPrompt(deps, address, runtime));
    },
    async promptOf(turn, step) {
      const prompt = await sentPrompt(deps, tenant, turn, step);
      const [address, runtime] = await memberIn(prompt.conversation, prompt.agent);
      return inspectPrompt(deps, address, runtime, prompt);
    },
    async diff(a, b, steps = {}) {
      const { diffTurns } = await import('../inspect/diff-turns.ts');
      return diffTurns(deps, tenant, [a, b], steps);
    },
    async cost(conversation, agent, options) {
      const [address, runtime] = await memberIn(conversation, agent);
      return cacheCost(deps, address, runtime, options);
    },
    trace: (turn) => traceTurn(deps, tenant, turn),
    async command(given, by) {
      await parts.tenants.note(tenant);
      return executeCommand({ door, engine, tenant, workflows, existing }, given, by);
    },
    async delete(conversation, { exported: kept }) {
      const root = await existing(conversation);
      const deleted = await deleteConversation(deps, root, kept);
      door.participantsCache.forget(root);
      return deleted;
    },
    async import(chunks, request) {
      await parts.tenants.note(tenant);
      const { importInto } = await import('./import-into.ts');
      return importInto(deps, tenant, chunks, request);
    },
    export: exported,
    watch: (watcher, { conversation = null } = {}) => parts.watchers.add(tenant, conversation, watcher),
    async queues({ own = false } = {}) {
      // What others have waiting is not theirs to know.
      if (own || tenant !== DEFAULT_TENANT)
        return { waiting: await router.backlog(tenant), active: 0, delayed: 0 };
      const { wait = null, failed = 0 } = parts.waits?.() ?? {};
      return { ...(await router.depth()), ...(failed > 0 && { failed }), ...(wait && { wait }) };
    },
    budgets: ({ conversation, agent } = {}) =>
      budgetReport(deps.budgets, tenant, {
        now: clock.now(),
        ...(conversation !== undefined && { root: conversationId(conversation) }),
        ...(agent !== undefined && { agent: resolveAgent(registry, agent) }),
      }),
    async health() {
      const [stored, queued] = await Promise.all([
        wellOrNot(Promise.all([store.check(), store.conversations(tenant, 1)])),
        wellOrNot(router.check()),
      ]);
      return { store: stored, queue: queued };
    },
    idle: () => waitUntilQuiet(router, { clock, closed: parts.closed }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function wellOrNot(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

function agentInfo({ profile, capabilities, tools, pubkey }: AgentRuntime): AgentInfo {
  const { id, name, role, description, provider, model } = profile;
  const granted = [...tools.keys()];
  return { id, name, role, description, capabilities, provider, model, tools: granted, pubkey };
}

function tenantId(text: string): TenantId {
  const parsed = TenantId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new TroupeError('event_invalid', `"${text}" is no id of a tenant`, { path: 'tenant' });
}
