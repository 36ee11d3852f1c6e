import { setImmediate } from 'node:timers/promises';
import { isGranted, rangesOf } from '../access/index.ts';
import { resolveAgent } from '../../actors/conversations/messages.ts';
import { conversationState, waitUntilRest } from '../../actors/conversations/conversation-state.ts';
import { deleteConversation, readTree } from '../../actors/conversations/delete-conversation.ts';
import type { AgentRuntime } from '../../actors/actor/agent-runtime.ts';
import { readPages } from '../../actors/log/read-log.ts';
import { listTasks } from '../../actors/log/tasks.ts';
import type { Workflow } from '../../actors/attempt/feature-types.ts';
import { TroupeError } from '../../base/errors.ts';
import { type ActorAddress, DEFAULT_TENANT, type Event, type TenantId } from '../../events/index.ts';
import { exportConversation } from '../import/troupe-format.ts';
import { actorStatuses } from '../inspect/actor-status.ts';
import { cacheCost } from '../inspect/cache-cost.ts';
import { inspectPrompt } from '../inspect/inspect-prompt.ts';
import { nextPrompt, sentPrompt } from '../inspect/prompts.ts';
import { traceTurn } from '../inspect/trace.ts';
import { type ConversationKey, PAGE_BYTES, type Store } from '../../store/store.ts';
import type { ConversationList, ConversationListQuery, Troupe, WorkflowInfo } from '../troupe.ts';
import { conversationHandle } from '../conversation-handle.ts';
import { askingMethods } from './asking-methods.ts';
import { executeCommand } from './execute-command.ts';
import { conversationId, readCommand, readMessage } from './parse-input.ts';
import { readQueues } from './read-queues.ts';
import { readStuck } from './read-stuck.ts';
import { readAttachment } from './read-attachment.ts';
import { checkOptionsOf } from './read-options.ts';
import { passageShelf } from './passage-shelf.ts';
import { toolPlace } from '../../actors/turn/run-calls.ts';
import { standingShelf } from './standing-shelf.ts';
import { sendMessage } from './send-message.ts';
import { findConversation, type TenantContext } from './tenant-context.ts';
import { waitUntilQuiet } from './wait-until-quiet.ts';

export function tenantFacade(context: TenantContext): Troupe {
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
    standings: standingShelf(context),
    passages: passageShelf(context),
    webhooks: integrations.webhooksOf(tenant),
    taskPushes: integrations.taskPushesOf(tenant),
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

  async function* eventsOf(log: ConversationKey): AsyncGenerator<Event> {
    for await (const events of readPages(store, log, { after: 0 })) yield* events;
  }

  return {
    conversations: (limit = 200) => store.conversations(tenant, limit),
    listConversations: (query) => listConversations(store, tenant, query),
    async state(conversation) {
      const log = await findConversation(context, conversation);
      const { book } = await taskFolds.of(log);
      return { id: log.conversation, head: log.head, ...conversationState(book) };
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
    async tasks(conversation, options) {
      checkOptionsOf('tasks', options);
      return listTasks(taskFolds, await findConversation(context, conversation), options);
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
    async *export(conversation, { threads = false } = {}) {
      const root = await findConversation(context, conversation);
      const branches = threads ? await readTree(store, root) : [{ log: root }];
      for (const { log } of branches) yield* exportConversation(eventsOf(log), log.conversation);
    },
  } satisfies Partial<Troupe>;
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
        { conversations, engine, tenant, workflows, commands: parts.commands, existing },
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
      return deleted;
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
      const { diffTurns } = await import('../inspect/diff-turns.ts');
      return diffTurns(deps, tenant, [a, b], steps);
    },
    async compare(a, b) {
      const { compareTurns } = await import('../inspect/compare-turns.ts');
      return compareTurns(deps, tenant, [a, b]);
    },
    async cost(conversation, agent, options) {
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

const PAGE_CURSOR = /^(\d{1,15}):(.+)$/;

/** One page of a tenant's conversations. Throws `event_invalid` for a cursor that no page returned. */
async function listConversations(
  store: Pick<Store, 'listConversations'>,
  tenant: TenantId,
  { limit = 200, before, among }: ConversationListQuery = {},
): Promise<ConversationList> {
  const { conversations, next } = await store.listConversations(tenant, {
    limit,
    ...(before !== undefined && { before: parseCursor(before) }),
    ...(among && { ranges: rangesOf(among) }),
  });
  return {
    conversations: among
      ? conversations.filter(({ id }) => isGranted({ conversations: among }, id))
      : conversations,
    next: next && `${next.at}:${next.id}`,
  };
}

function parseCursor(text: string): { at: number; id: string } {
  const [, at, id] = PAGE_CURSOR.exec(text) ?? [];
  if (at !== undefined && id !== undefined) return { at: Number(at), id };
  const message = `"${text}" is not a position in the list: use the "next" of a page`;
  throw new TroupeError('event_invalid', message, { path: 'before' });
}
