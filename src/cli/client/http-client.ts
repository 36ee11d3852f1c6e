import type { Author } from '../../events/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { createClient, type StreamFrame } from '../../http/api/client.ts';
import {
  authorNamed,
  type Client,
  type ClientKeys,
  type ClientWebhooks,
  type Frame,
  type WatchFrame,
  countedInbox,
} from './client.ts';
import { headOf } from '../../library/asking/follow.ts';

/** A troupe at a URL. Answers are not validated, because the server is Troupe's own. */
export function createHttpClient(url: string, token: string | undefined): Client {
  const unauthorized =
    token === undefined
      ? 'this server needs a credential: set TROUPE_KEY to your key, or TROUPE_TOKEN'
      : 'this server does not accept your TROUPE_KEY or TROUPE_TOKEN: it is unknown, expired or revoked';
  const api = createClient({ url, token, unauthorized });

  let caller: ReturnType<typeof askWhoami> | null = null;
  const askWhoami = () => api.request('GET /api/whoami');
  const whoami = () => (caller ??= askWhoami());

  /** Without `--as`, the author is the key's, if it has one. */
  async function speaker(named: Author): Promise<Author> {
    if (token === undefined || named.id !== authorNamed().id) return named;
    return (await whoami()).author ?? named;
  }

  return {
    isDirect: false,
    async send(c, { channel, ...message }) {
      // Only operators may name a channel. The server gives everybody else the channel `http`.
      const isOperator = (await whoami()).scopes.includes('operate');
      const named = isOperator && channel !== undefined ? { channel } : {};
      const body = { ...message, ...named, author: await speaker(message.author) };
      return (
        await api.request('POST /api/conversations/{conversation}/events', {
          params: { conversation: c },
          body,
        })
      ).event;
    },
    async command(command, author) {
      const body = { ...command, author: await speaker(author) };
      return (await api.request('POST /api/commands', { body })).event;
    },
    conversations: async () => (await api.request('GET /api/conversations')).conversations,
    inbox: ({ kind } = {}) =>
      countedInbox(() => api.request('GET /api/inbox', { query: { limit: 100, kind } })),
    listConversations: (before) => api.request('GET /api/conversations', { query: { before } }),
    ...logsOf(api),
    follow: (conversation, after, signal) => follow(api, conversation, after, signal),
    async *watch(conversation, after, signal): AsyncGenerator<WatchFrame, void> {
      const frames = await api.events(conversation === null ? {} : { conversation, after }, signal);
      yield { type: 'open' };
      yield* frames;
    },
    ...promptsOf(api),
    import: (chunks, { fileName, ...fields }) =>
      api.request('POST /api/import', {
        query: { ...fields, file: fileName },
        file: ReadableStream.from(chunks) as NonNullable<RequestInit['body']>,
      }),
    people: peopleOf(api),
    keys: keysOf(api),
    webhooks: webhooksOf(api),
    queues: () => api.request('GET /api/queues'),
    stuck: ({ afterMs, limit }) => api.request('GET /api/stuck', { query: { after: afterMs, limit } }),
    nostr: async () => (await api.request('GET /api/nostr')).nostr,
    idle: async () => {},
    close: async () => {},
  };
}

/** Continues where a stream has ended, such as when `troupe dev` reloads its agents. Throws once no server answers. */
async function* follow(
  api: Api,
  conversation: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<Frame, void> {
  for (let seen = after; !signal.aborted;) {
    for await (const frame of untilLost(await api.events({ conversation, after: seen }, signal))) {
      if (frame.type === 'event') seen = frame.event.seq;
      if (frame.type === 'reset') seen = 0;
      if (frame.type !== 'gap' && frame.type !== 'reset') yield frame;
    }
  }
}

/** The frames of a stream until its connection is lost. */
async function* untilLost(frames: AsyncGenerator<StreamFrame, void>): AsyncGenerator<StreamFrame, void> {
  try {
    yield* frames;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'store_unavailable') throw error;
  }
}

type Api = ReturnType<typeof createClient>;

function logsOf(
  api: Api,
): Pick<Client, 'verify' | 'actors' | 'tasks' | 'head' | 'export' | 'delete' | 'erase'> {
  return {
    verify: (c, after) =>
      api.request('GET /api/conversations/{conversation}/integrity', {
        params: { conversation: c },
        query: { after },
      }),
    actors: async (c) =>
      (await api.request('GET /api/conversations/{conversation}/actors', { params: { conversation: c } }))
        .actors,
    tasks: (c, { open }) =>
      api.whole('GET /api/conversations/{conversation}/tasks', 'tasks', {
        params: { conversation: c },
        query: { open: open || undefined },
      }),
    head: (c) =>
      headOf(
        api.request('GET /api/conversations/{conversation}/events', {
          params: { conversation: c },
          query: { limit: 1 },
        }),
      ),
    async *export(c, query = {}) {
      const input = { params: { conversation: c }, query };
      const { body } = await api.open('GET /api/conversations/{conversation}/export', input);
      const decoder = new TextDecoder();
      for await (const chunk of body ?? []) yield decoder.decode(chunk as Uint8Array, { stream: true });
      yield decoder.decode();
    },
    erase: (body) => api.request('POST /api/erasures', { body }),
    delete: (c, exported) =>
      api.request('DELETE /api/conversations/{conversation}', {
        params: { conversation: c },
        query: { exported },
      }),
  };
}

function promptsOf(
  api: Api,
): Pick<Client, 'prompt' | 'promptOf' | 'diff' | 'compare' | 'cost' | 'cacheCost' | 'trace'> {
  return {
    prompt: (c, a) =>
      api.whole('GET /api/conversations/{conversation}/agents/{agent}/prompt', 'messages', {
        params: { conversation: c, agent: a },
      }),
    promptOf: (t, step) =>
      api.whole('GET /api/turns/{turn}/prompt', 'messages', { params: { turn: t }, query: { step } }),
    compare: (turn, other) =>
      api.request('GET /api/turns/{turn}/compare/{other}', { params: { turn, other } }),
    diff: (turn, other, { stepA, stepB }) =>
      api.request('GET /api/turns/{turn}/diff/{other}', { params: { turn, other }, query: { stepA, stepB } }),
    cost: (conversation) =>
      api.request('GET /api/conversations/{conversation}/cost', { params: { conversation } }),
    cacheCost: (c, a, { vendor }) =>
      api.whole('GET /api/conversations/{conversation}/agents/{agent}/cache-cost', 'rows', {
        params: { conversation: c, agent: a },
        query: { vendor },
      }),
    trace: (t) => api.whole('GET /api/turns/{turn}', 'events', { params: { turn: t } }),
  };
}

function peopleOf(api: Api): Client['people'] {
  return {
    get: async (id) => (await api.request('GET /api/people/{person}', { params: { person: id } })).profile,
    async set(id, body) {
      const { profile } = await api.request('POST /api/people/{person}', { params: { person: id }, body });
      return profile ?? {};
    },
    remove: async (id) =>
      (await api.request('DELETE /api/people/{person}', { params: { person: id } })).removed,
  };
}

function keysOf(api: Api): ClientKeys {
  return {
    create: (key, tenant) => api.request('POST /api/keys', { body: { ...key, tenant } }),
    list: async (tenant) => (await api.request('GET /api/keys', { query: { tenant } })).keys,
    rotate: (id, body, tenant) =>
      api.request('POST /api/keys/{key}/rotate', { params: { key: id }, query: { tenant }, body }),
    revoke: async (id, tenant) =>
      (await api.request('DELETE /api/keys/{key}', { params: { key: id }, query: { tenant } })).key,
  };
}

function webhooksOf(api: Api): ClientWebhooks {
  return {
    create: (body, tenant) => api.request('POST /api/webhooks', { query: { tenant }, body }),
    list: async (tenant) => (await api.request('GET /api/webhooks', { query: { tenant } })).webhooks,
    remove: async (id, tenant) =>
      (await api.request('DELETE /api/webhooks/{webhook}', { params: { webhook: id }, query: { tenant } }))
        .webhook,
    test: (id, tenant) =>
      api.request('POST /api/webhooks/{webhook}/test', { params: { webhook: id }, query: { tenant } }),
    rotate: (id, tenant) =>
      api.request('POST /api/webhooks/{webhook}/rotate', { params: { webhook: id }, query: { tenant } }),
  };
}
