import type { InboxQuery } from '../../http/inbox.ts';
import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ConversationId } from '../../events/index.ts';
import { followAll, followConversation, headOf } from '../../library/asking/follow.ts';
import type { Troupe } from '../../library/troupe.ts';
import {
  type Client,
  type ClientKeys,
  type ClientWebhooks,
  type Frame,
  type WatchFrame,
  countedInbox,
} from './client.ts';

async function directInbox(troupe: Troupe, query: Pick<InboxQuery, 'limit' | 'kind'>) {
  const { createInboxKeeper, readInbox } = await import('../../http/inbox.ts');
  // A conversation that cannot be read stays counted as unread.
  const keeper = createInboxKeeper(troupe, { clock: systemClock, onError: () => {} });
  return countedInbox(() => readInbox(troupe, keeper, systemClock, { order: 'urgent', ...query }));
}

export function createDirectClient(troupe: Troupe): Client {
  return {
    isDirect: true,
    async send(conversation, message) {
      return (await troupe.send(conversation, message)).event;
    },
    command: (command, author) => troupe.command(command, author),
    conversations: () => troupe.conversations(),
    inbox: (query) => directInbox(troupe, { limit: 100, ...query }),
    listConversations: (before) => troupe.listConversations({ before }),
    verify: (conversation, after) => troupe.verify(conversation, { after }),
    actors: (conversation) => troupe.actors(conversation),
    tasks: (conversation, options) => troupe.tasks(conversation, options),
    head: (conversation) => headOf(troupe.events(conversation, { limit: 1 })),
    async *follow(conversation, after, signal): AsyncGenerator<Frame, void> {
      const options = { troupe, clock: systemClock, signal };
      for await (const frame of followConversation(conversation as ConversationId, after, options)) {
        if (frame.type !== 'heartbeat' && frame.type !== 'gap' && frame.type !== 'reset') yield frame;
      }
    },
    async *watch(conversation, after, signal): AsyncGenerator<WatchFrame, void> {
      const options = { troupe, clock: systemClock, signal };
      const frames =
        conversation === null
          ? followAll(options)
          : followConversation(conversation as ConversationId, after, options);
      for await (const frame of frames) {
        if (frame.type !== 'heartbeat') yield frame;
      }
    },
    prompt: (conversation, agent) => troupe.prompt(conversation, agent),
    promptOf: (turn, step) => troupe.promptOf(turn, step),
    diff: (a, b, steps) => troupe.diff(a, b, steps),
    compare: (a, b) => troupe.compare(a, b),
    cost: (conversation) => troupe.cost(conversation),
    cacheCost: (conversation, agent, options) => troupe.cacheCost(conversation, agent, options),
    trace: (turn) => troupe.trace(turn),
    import: (chunks, request) => troupe.import(chunks, request),
    export: (conversation, options) => troupe.export(conversation, options),
    delete: (conversation, exported) => troupe.delete(conversation, { exported }),
    erase: (target, by, onProgress) => troupe.erase({ ...target, by, onProgress }),
    people: troupe.people,
    keys: directKeys(troupe),
    webhooks: directWebhooks(troupe),
    queues: () => troupe.queues(),
    async stuck(query) {
      // Read first, because `stuck` looks for people's answers in what the inbox has read.
      await directInbox(troupe, { limit: 1 });
      return troupe.stuck(query);
    },
    nostr: async () => troupe.nostr(),
    idle: () => troupe.idle(),
    close: () => troupe.close(),
  };
}

function directKeys(root: Troupe): ClientKeys {
  const bookOf = (tenant: string | undefined) => (tenant === undefined ? root : root.forTenant(tenant)).keys;
  function found<T>(issued: T | null, id: string): T {
    if (issued !== null) return issued;
    throw new TroupeError('command_refused', `there is no valid key "${id}"`, { key: id });
  }
  return {
    create: (key, tenant) => bookOf(tenant).create(key),
    list: (tenant) => bookOf(tenant).list(),
    rotate: async (id, options, tenant) => found(await bookOf(tenant).rotate(id, options), id),
    revoke: async (id, tenant) => found(await bookOf(tenant).revoke(id), id),
  };
}

function directWebhooks(root: Troupe): ClientWebhooks {
  const bookOf = (tenant: string | undefined) =>
    (tenant === undefined ? root : root.forTenant(tenant)).webhooks;
  function found<T>(answer: T | null, id: string): T {
    if (answer !== null) return answer;
    throw new TroupeError('command_refused', `there is no webhook "${id}"`, { webhook: id });
  }
  return {
    create: (webhook, tenant) => bookOf(tenant).create(webhook),
    list: (tenant) => bookOf(tenant).list(),
    remove: async (id, tenant) => found(await bookOf(tenant).remove(id), id),
    test: async (id, tenant) => found(await bookOf(tenant).test(id), id),
    rotate: async (id, tenant) => found(await bookOf(tenant).rotate(id), id),
  };
}
