import {
  agent,
  type AgentConnection,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type Stream,
  type AgentContext,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import {
  TroupeError,
  type Troupe,
  type Chat,
  type Event,
  type Failure,
  addressed,
  isAbout,
  nobodyAnswers,
  openChat,
  type NewAttachment,
  type EventOf,
  type StdioParts,
} from '../troupe.ts';
import { namesIn } from '../speech.ts';
import { messageUpdate, type SessionUpdate, sessionUpdates } from './session-updates.ts';

/** The mode in which the conversation's routing decides who answers. */
const ROUTED = 'troupe';
const ROUTED_MODE = {
  id: ROUTED,
  name: 'Troupe',
  description: 'Whoever the routing of the conversation names',
};
const MOST_SESSIONS = 50;

/**
 * Serves one editor with the Agent Client Protocol, version 1, until the editor disconnects or `signal` aborts. A session is a
 * conversation. Agents are modes, because a prompt has no addressee; approvals are permissions.
 */
export async function serveAcp(parts: StdioParts, stream: Stream): Promise<void> {
  const { troupe, clock, version, signal } = parts;
  const sessions = new Map<string, Session>();
  let made = 0;

  function sessionOf(id: string): Session {
    const known = sessions.get(id);
    if (known) return known;
    const session = new Session(parts, id);
    sessions.set(id, session);
    return session;
  }

  const modes = {
    currentModeId: ROUTED,
    availableModes: [
      ROUTED_MODE,
      ...troupe.agents.map(({ id, name, description }) => ({ id, name, description })),
    ],
  };

  const app = agent({ name: 'troupe' })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {} },
      },
      agentInfo: { name: 'troupe', title: 'Troupe', version },
      authMethods: [],
    }))
    .onRequest(methods.agent.session.new, () => {
      const sessionId = `acp-${clock.now().toString(36)}-${(made += 1)}`;
      sessionOf(sessionId);
      return { sessionId, modes };
    })
    .onRequest(methods.agent.session.load, ({ params: { sessionId }, client }) =>
      inWords(async () => {
        for await (const update of loadSession(troupe, sessionId))
          await client.notify(methods.client.session.update, { sessionId, update });
        return { modes: { ...modes, currentModeId: sessionOf(sessionId).mode } };
      }),
    )
    .onRequest(methods.agent.session.list, async ({ params }) => {
      const { conversations, next } = await troupe.listConversations({
        limit: MOST_SESSIONS,
        ...(params.cursor != null && { before: params.cursor }),
      });
      return {
        sessions: conversations.map(({ id, at }) => ({
          sessionId: id,
          cwd: params.cwd ?? '/',
          title: id,
          updatedAt: new Date(at).toISOString(),
        })),
        ...(next !== null && { nextCursor: next }),
      };
    })
    .onRequest(methods.agent.session.setMode, ({ params }) =>
      inWords(async () => {
        sessionOf(params.sessionId).setMode(params.modeId);
        return {};
      }),
    )
    .onRequest(methods.agent.session.prompt, ({ params, client, signal: gone }) =>
      inWords(() => sessionOf(params.sessionId).prompt(params.prompt, { client, signal: gone })),
    )
    .onNotification(methods.agent.session.cancel, ({ params }) => sessionOf(params.sessionId).cancel());

  const connection: AgentConnection = app.connect(stream);
  signal.addEventListener('abort', () => connection.close(), { once: true });
  await connection.closed;
}

/** "Invalid params" of JSON-RPC. */
const INVALID = -32_602;

/** Converts Troupe's errors to errors of the protocol that tell what to do. */
async function inWords<T>(handle: () => Promise<T>): Promise<T> {
  try {
    return await handle();
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    throw new RequestError(INVALID, error.message, { code: error.code });
  }
}

/** Most events of a history that are sent, the newest ones. */
const MOST_TOLD = 2_000;

/** The messages of a conversation so far. Throws `conversation_unknown`. */
async function* loadSession(troupe: Troupe, conversation: string): AsyncGenerator<SessionUpdate, void> {
  const nameOf = namesIn(troupe);
  const { head } = await troupe.state(conversation);
  for (let after = Math.max(0, head - MOST_TOLD); after < head;) {
    const { events } = await troupe.events(conversation, { after });
    for (const event of events) yield* messageUpdate(event, nameOf);
    const last = events.at(-1);
    if (!last) return;
    after = last.seq;
  }
}

/** "Internal error" of JSON-RPC. */
const INTERNAL = -32_603;

type StopReason = 'end_turn' | 'cancelled';
type Parts = Pick<StdioParts, 'troupe' | 'author'>;
type Telling = { chat: Chat; updatesOf: ReturnType<typeof sessionUpdates>; editor: Editor };

/**
 * The session of one editor in one conversation. Owns the addressee of its prompts, and which turns are running.
 *  1. A prompt ends when nobody works on it any more. Questions to people go to the editor first.
 *  2. A cancelled prompt asks nothing more.
 */
class Session {
  readonly #parts: Parts;
  readonly #conversation: string;
  /** The running turns, by id. */
  readonly #turns = new Set<string>();
  #mode = ROUTED;
  #isCancelled = false;

  constructor(parts: Parts, conversation: string) {
    this.#parts = parts;
    this.#conversation = conversation;
  }

  /** Id of the addressed agent, or `troupe`. */
  get mode(): string {
    return this.#mode;
  }

  /** Throws `agent_unknown`. */
  setMode(mode: string): void {
    if (mode !== ROUTED && !this.#parts.troupe.agents.some(({ id }) => id === mode))
      throw new TroupeError('agent_unknown', `there is no agent "${mode}"`, { agent: mode });
    this.#mode = mode;
  }

  /** Sends a prompt, and reports to the editor what follows. */
  async prompt(blocks: readonly ContentBlock[], editor: Editor): Promise<{ stopReason: StopReason }> {
    this.#isCancelled = false;
    const { troupe } = this.#parts;
    const session = this.#conversation;
    const nameOf = namesIn(troupe);
    const telling = {
      chat: openChat(troupe, session),
      updatesOf: sessionUpdates(session, nameOf),
      editor,
    };
    const first = await this.#say(blocks);
    const asked = await this.#tell(first.seq, telling);
    // The list grows meanwhile: what follows from an approved call may need approval too.
    for (const approval of asked) {
      const decided = this.#isCancelled
        ? null
        : await askPermission(this.#parts, approval, { session, editor });
      if (!decided) continue;
      const isHere = decided.conversation === session && decided.to.length > 0;
      asked.push(...(await this.#tell(isHere ? decided.seq : first.seq, telling)));
    }
    return { stopReason: this.#isCancelled ? 'cancelled' : 'end_turn' };
  }

  /** Aborts the turns that answer the prompt. */
  async cancel(): Promise<void> {
    this.#isCancelled = true;
    const { troupe, author } = this.#parts;
    await Promise.allSettled(
      [...this.#turns].map((turn) => troupe.command({ command: 'abort', turn }, author)),
    );
  }

  /** If a question is open, the prompt answers it. */
  async #say(blocks: readonly ContentBlock[]): Promise<Event> {
    const { troupe, author } = this.#parts;
    const conversation = this.#conversation;
    const { content, attachments } = promptContent(blocks);
    const question = attachments.length === 0 ? await this.#openQuestion() : null;
    if (question !== null)
      return troupe.command({ command: 'answer', conversation, question, content }, author);
    const to = this.#mode === ROUTED ? undefined : [this.#mode];
    const message = addressed({ author, content, attachments, channel: 'acp', to }, troupe.agents);
    const { event } = await troupe.send(conversation, message);
    if (event.to.length === 0) throw nobodyAnswers();
    return event;
  }

  async #openQuestion(): Promise<string | null> {
    try {
      const { tasks } = await this.#parts.troupe.tasks(this.#conversation, { open: true });
      return tasks.find((task) => task.kind === 'question' && this.#mayAnswer(task.by))?.id ?? null;
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
      throw error;
    }
  }

  #mayAnswer(by: readonly string[] = []): boolean {
    return by.length === 0 || by.includes(this.#parts.author.id);
  }

  /** Reports to the editor what follows from an event. Returns the calls that wait for a person's decision. */
  async #tell(seq: number, { chat, updatesOf, editor }: Telling): Promise<Approval[]> {
    const asked: Approval[] = [];
    const going = chat.follow(seq, editor.signal);
    let next = await going.next();
    for (; !next.done; next = await going.next()) {
      const change = next.value;
      for (const update of updatesOf(change))
        await editor.client.notify(methods.client.session.update, { sessionId: this.#conversation, update });
      if (change.type === 'event') this.#note(change.event, asked);
    }
    const { outcome, failures } = next.value;
    const [failure] = failures;
    if (failure && outcome === 'failed' && !this.#isCancelled) throw failed(failure);
    return asked;
  }

  #note(event: Event, asked: Approval[]): void {
    if (event.kind === 'turn.started' && event.turn) this.#turns.add(event.turn);
    if (event.turn && isAbout(event, 'turnEnd')) this.#turns.delete(event.turn);
    if (event.kind === 'approval.requested' && this.#mayAnswer(event.body.by)) asked.push(event);
  }
}

function failed({ agent, code, message }: Failure): RequestError {
  return new RequestError(INTERNAL, `@${agent}: ${message}`, { code });
}

/** A part of a prompt, in the protocol's form. */
type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; mimeType: string; data: string }
  | { type: 'audio'; mimeType: string; data: string }
  | { type: 'resource_link'; uri: string; name: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string | null; text?: string; blob?: string } };

/** A prompt as a message: files that the editor sends become attachments, and links are named in the text. */
function promptContent(blocks: readonly ContentBlock[]): {
  content: string;
  attachments: NewAttachment[];
} {
  const texts: string[] = [];
  const attachments: NewAttachment[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        texts.push(block.text);
        break;
      case 'resource_link':
        texts.push(`[${block.name}](${block.uri})`);
        break;
      case 'image':
      case 'audio':
        attachments.push({ mediaType: block.mimeType, data: block.data });
        break;
      case 'resource': {
        const { uri, mimeType, text, blob } = block.resource;
        const name = uri.slice(uri.lastIndexOf('/') + 1).slice(0, 200) || 'file';
        const data = blob ?? new TextEncoder().encode(text ?? '');
        attachments.push({
          name,
          mediaType: mimeType ?? (blob === undefined ? 'text/plain' : 'application/octet-stream'),
          data,
        });
      }
    }
  }
  return { content: texts.join('\n'), attachments };
}

type Approval = EventOf<'approval.requested'>;

/** The editor that waits for an answer. */
interface Editor {
  client: AgentContext;
  signal: AbortSignal;
}

const ALLOW = { optionId: 'allow', name: 'Allow', kind: 'allow_once' } as const;
const REJECT = { optionId: 'reject', name: 'Reject', kind: 'reject_once' } as const;

/**
 * Asks the editor whether a call may run, unless somebody else decides first. Returns the event of the decision, or null if
 * nobody has decided.
 */
async function askPermission(
  { troupe, author }: Pick<StdioParts, 'troupe' | 'author'>,
  { conversation, body }: Approval,
  { session, editor }: { session: string; editor: Editor },
): Promise<Event | null> {
  const { request, argsHash } = body;
  const elsewhere = new AbortController();
  const unwatch = troupe.watch(
    (note) => {
      if (note.type === 'event' && isDecision(note.event, request)) elsewhere.abort();
    },
    { conversation },
  );
  try {
    const ended = AbortSignal.any([editor.signal, elsewhere.signal]);
    const approved = await permission(body, { session, client: editor.client, ended });
    if (approved === null) return await decisionOf(troupe, conversation, request);
    return await troupe.command({ command: 'decide', conversation, request, approved, argsHash }, author);
  } catch (error) {
    const isLate = error instanceof TroupeError && error.code === 'command_refused';
    if (isLate) return decisionOf(troupe, conversation, request);
    throw error;
  } finally {
    unwatch();
  }
}

/** Null: the editor does not decide, or need not decide any more. */
async function permission(
  { request, tool, args }: Approval['body'],
  { session, client, ended }: { session: string; client: AgentContext; ended: AbortSignal },
): Promise<boolean | null> {
  const params: RequestPermissionRequest = {
    sessionId: session,
    toolCall: {
      toolCallId: request,
      title: `Call ${tool}`,
      kind: 'other',
      status: 'pending',
      rawInput: parsed(args),
    },
    options: [ALLOW, REJECT],
  };
  try {
    const { outcome } = await client.request(methods.client.session.requestPermission, params, {
      cancellationSignal: ended,
      stopWaitingOnCancel: true,
    });
    return outcome.outcome === 'selected' ? outcome.optionId === ALLOW.optionId : null;
  } catch (error) {
    if (ended.aborted) return null;
    throw error;
  }
}

async function decisionOf(troupe: Troupe, conversation: string, request: string): Promise<Event | null> {
  const { tasks } = await troupe.tasks(conversation);
  const end = tasks.find(({ id }) => id === request)?.end;
  if (!end) return null;
  const { events } = await troupe.events(conversation, { after: end.seq - 1, limit: 1 });
  return events[0] ?? null;
}

function isDecision(event: Event, request: string): boolean {
  return event.kind === 'approval.decided' && event.body.request === request;
}

function parsed(args: string): unknown {
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}
