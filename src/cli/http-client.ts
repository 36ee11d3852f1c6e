import type { NostrStatus } from '../nostr/open-nostr.ts';
import type { IssuedKey, KeyInfo } from '../access/index.ts';
import { ERROR_CODES, type ErrorCode, TroupeError } from '../errors.ts';
import type { Author, Event } from '../events/index.ts';
import type { ImportReport } from '../import/index.ts';
import { fetchWithinOrigin } from '../net/redirects.ts';
import type { IssuedWebhook, WebhookInfo, WebhookTest } from '../outbound/webhook-book.ts';
import type {
  ActorStatus,
  ConversationInfo,
  CostReport,
  Deleted,
  InspectedPrompt,
  PromptDiff,
  QueueReport,
  SentPrompt,
  TaskList,
  TurnTrace,
} from '../troupe.ts';
import { authorNamed } from './author-named.ts';
import type { AgentState, Client, Delta, Frame, WatchFrame } from './client.ts';
import { getPages } from './get-pages.ts';
import { readServerEvents } from './read-server-events.ts';

type RequestBody = NonNullable<RequestInit['body']>;

/** A troupe behind a URL. What it sends is trusted: it is our own server. */
export function createHttpClient(base: string, token: string | undefined): Client {
  const root = base.replace(/(?<!\/)\/+$/, '');

  async function request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const response = await fetchWithinOrigin(`${root}${path}`, { ...init, headers }).catch(
      (cause: unknown) => {
        if (init.signal?.aborted || cause instanceof TroupeError) throw cause;
        throw unreachable(root, cause);
      },
    );
    if (!response.ok) throw await errorOf(response, token !== undefined);
    return response;
  }
  async function get<T>(path: string): Promise<T> {
    return (await (await request(path)).json()) as T;
  }
  async function post<T>(path: string, body: RequestBody, type: string): Promise<T> {
    // `duplex` is what fetch asks for where the body is a stream.
    const init = { method: 'POST', body, headers: { 'content-type': type }, duplex: 'half' as const };
    return (await (await request(path, init)).json()) as T;
  }
  /** Who names nobody with `--as` speaks as the one whose words their key brings, where it says so. */
  async function speaker(named: Author): Promise<Author> {
    if (token === undefined || named.id !== authorNamed().id) return named;
    return (await get<{ author: Author | null }>('/api/whoami')).author ?? named;
  }
  const conversationPath = (conversation: string) => `/api/conversations/${encodeURIComponent(conversation)}`;
  const agentPath = (conversation: string, agent: string) =>
    `${conversationPath(conversation)}/agents/${encodeURIComponent(agent)}`;
  const webhookPath = (id: string, act: string, tenant: string | undefined) =>
    `/api/webhooks/${encodeURIComponent(id)}${act}${queryOf({ tenant })}`;
  const turnPath = (turn: string) => `/api/turns/${encodeURIComponent(turn)}`;

  return {
    isDirect: false,
    async send(conversation, message) {
      const path = `${conversationPath(conversation)}/events`;
      const body = JSON.stringify({ ...message, author: await speaker(message.author) });
      return (await post<{ event: Event }>(path, body, 'application/json')).event;
    },
    async command(command, author) {
      const body = JSON.stringify({ ...command, author: await speaker(author) });
      return (await post<{ event: Event }>('/api/commands', body, 'application/json')).event;
    },
    async conversations() {
      return (await get<{ conversations: ConversationInfo[] }>('/api/conversations')).conversations;
    },
    async actors(conversation) {
      return (await get<{ actors: ActorStatus[] }>(`${conversationPath(conversation)}/actors`)).actors;
    },
    tasks: (conversation, { open }) =>
      getPages('tasks', (skip) =>
        get<TaskList>(
          `${conversationPath(conversation)}/tasks${queryOf({ open: open ? 'true' : undefined, skip })}`,
        ),
      ),
    async head(conversation) {
      try {
        return (await get<{ head: number }>(`${conversationPath(conversation)}/events?limit=1`)).head;
      } catch (error) {
        if (error instanceof TroupeError && error.code === 'conversation_unknown') return 0;
        throw error;
      }
    },
    async *follow(conversation, after, signal): AsyncGenerator<Frame, void> {
      const query = new URLSearchParams({ conversation, after: String(after) });
      const response = await request(`/api/events?${query}`, { signal });
      for await (const { event, data } of readServerEvents(response)) {
        if (event === 'event') yield { type: 'event', event: JSON.parse(data) as Event };
        if (event === 'stream') yield { type: 'delta', delta: JSON.parse(data) as Delta };
      }
      if (!signal.aborted) throw unreachable(root, 'the stream of events ended');
    },
    async *watch(conversation, after, signal): AsyncGenerator<WatchFrame, void> {
      const query = conversation === null ? '' : queryOf({ conversation, after });
      const response = await request(`/api/events${query}`, { signal });
      yield { type: 'open' };
      try {
        for await (const { event, data } of readServerEvents(response)) {
          if (event === 'event') yield { type: 'event', event: JSON.parse(data) as Event };
          if (event === 'state') yield { type: 'state', state: JSON.parse(data) as AgentState };
          if (event === 'gap') yield { type: 'gap' };
        }
      } catch (cause) {
        if (!signal.aborted) throw unreachable(root, cause);
      }
      if (!signal.aborted) throw unreachable(root, 'the stream of events ended');
    },
    prompt: (conversation, agent) =>
      getPages('messages', (skip) =>
        get<InspectedPrompt>(`${agentPath(conversation, agent)}/prompt${queryOf({ skip })}`),
      ),
    promptOf: (turn, step) =>
      getPages('messages', (skip) => get<SentPrompt>(`${turnPath(turn)}/prompt${queryOf({ step, skip })}`)),
    diff: (a, b, { stepA, stepB }) =>
      get<PromptDiff>(`${turnPath(a)}/diff/${encodeURIComponent(b)}${queryOf({ stepA, stepB })}`),
    cost: (conversation, agent, { vendor }) =>
      getPages('rows', (skip) =>
        get<CostReport>(`${agentPath(conversation, agent)}/cost${queryOf({ vendor, skip })}`),
      ),
    trace: (turn) => getPages('events', (skip) => get<TurnTrace>(`${turnPath(turn)}${queryOf({ skip })}`)),
    import(chunks, { fileName, ...fields }) {
      const query = queryOf({ ...fields, file: fileName });
      const body = ReadableStream.from(chunks) as RequestBody;
      return post<ImportReport>(`/api/import${query}`, body, 'application/octet-stream');
    },
    async *export(conversation, { threads = false, format } = {}) {
      const query = queryOf({ threads: threads ? 'true' : undefined, format });
      const response = await request(`${conversationPath(conversation)}/export${query}`);
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        yield decoder.decode(chunk as Uint8Array, { stream: true });
      }
      yield decoder.decode();
    },
    async delete(conversation, exported) {
      const path = `${conversationPath(conversation)}${queryOf({ exported })}`;
      return (await (await request(path, { method: 'DELETE' })).json()) as Deleted;
    },
    keys: {
      create: (key, tenant) =>
        post<IssuedKey>('/api/keys', JSON.stringify({ ...key, tenant }), 'application/json'),
      list: async (tenant) => (await get<{ keys: KeyInfo[] }>(`/api/keys${queryOf({ tenant })}`)).keys,
      rotate(id, options, tenant) {
        const path = `/api/keys/${encodeURIComponent(id)}/rotate${queryOf({ tenant })}`;
        return post<IssuedKey>(path, JSON.stringify(options), 'application/json');
      },
      async revoke(id, tenant) {
        const path = `/api/keys/${encodeURIComponent(id)}${queryOf({ tenant })}`;
        return ((await (await request(path, { method: 'DELETE' })).json()) as { key: KeyInfo }).key;
      },
    },
    webhooks: {
      create: (webhook, tenant) =>
        post<IssuedWebhook>(
          `/api/webhooks${queryOf({ tenant })}`,
          JSON.stringify(webhook),
          'application/json',
        ),
      list: async (tenant) =>
        (await get<{ webhooks: WebhookInfo[] }>(`/api/webhooks${queryOf({ tenant })}`)).webhooks,
      async remove(id, tenant) {
        const removed = await request(webhookPath(id, '', tenant), { method: 'DELETE' });
        return ((await removed.json()) as { webhook: WebhookInfo }).webhook;
      },
      test: (id, tenant) => post<WebhookTest>(webhookPath(id, '/test', tenant), '{}', 'application/json'),
      rotate: (id, tenant) =>
        post<IssuedWebhook>(webhookPath(id, '/rotate', tenant), '{}', 'application/json'),
    },
    queues: () => get<QueueReport>('/api/queues'),
    nostr: async () => (await get<{ nostr: NostrStatus | null }>('/api/nostr')).nostr,
    idle: async () => {},
    close: async () => {},
  };
}

/** With its question mark, or nothing. */
function queryOf(fields: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? '' : `?${query}`;
}

function unreachable(url: string, cause: unknown): TroupeError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const reason = inner instanceof Error ? inner.message || inner.name : String(inner);
  const message = `no troupe answers at ${url} (${reason}); is it running?`;
  return new TroupeError('store_unavailable', message, { url }, { cause });
}

async function errorOf(response: Response, hadCredential: boolean): Promise<TroupeError> {
  const text = await response.text();
  const error = parseError(text);
  if (error === null) {
    const message = `${response.url} answered ${response.status}, and not as a troupe does`;
    return new TroupeError('internal', message, { status: response.status });
  }
  if (response.status === 401) {
    const message = hadCredential
      ? 'this server does not know your TROUPE_KEY or TROUPE_TOKEN: it is not of here, expired, or was taken back'
      : 'this server asks who you are: set TROUPE_KEY to a key of yours, or TROUPE_TOKEN';
    return new TroupeError('command_refused', message, { status: 401, refused: error.code });
  }
  const code = ERROR_CODES.find((known): known is ErrorCode => known === error.code);
  if (code) return new TroupeError(code, error.message, error.data ?? {});
  // What HTTP alone refuses, as `scope_missing`, has a name of its own there.
  const refused = { status: response.status, refused: error.code };
  return new TroupeError('command_refused', error.message, { ...error.data, ...refused });
}

function parseError(text: string): { code: string; message: string; data?: Record<string, unknown> } | null {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code: string; message: string; data?: Record<string, unknown> };
    };
    return error ?? null;
  } catch {
    // Not ours: a proxy, or another program on that port.
    return null;
  }
}
