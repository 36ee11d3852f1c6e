import {
  agent,
  type AgentConnection,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type Stream,
} from '@agentclientprotocol/sdk';
import type { StdioParts } from '../stdio-parts.ts';
import { TroupeError, type Troupe } from '../troupe.ts';
import { ROUTED, Session } from './session.ts';
import { messageUpdate, type SessionUpdate } from './session-updates.ts';

const ROUTED_MODE = {
  id: ROUTED,
  name: 'Troupe',
  description: 'Whoever the routing of the conversation names',
};
const MOST_SESSIONS = 50;

/**
 * Serves one editor by the Agent Client Protocol, version 1, until it goes or `signal` aborts. A session is a conversation.
 * Agents are modes, because a prompt has no addressee; approvals are permissions.
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

/** Errors of Troupe as errors of the protocol, with what to do. */
async function inWords<T>(handle: () => Promise<T>): Promise<T> {
  try {
    return await handle();
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    throw new RequestError(INVALID, error.message, { code: error.code });
  }
}

/** Longest history that is told, in events: the newest. */
const MOST_TOLD = 2_000;

/** The messages of a conversation so far. Throws `conversation_unknown`. */
export async function* loadSession(
  troupe: Troupe,
  conversation: string,
): AsyncGenerator<SessionUpdate, void> {
  const nameOf = (agent: string) => troupe.agents.find(({ id }) => id === agent)?.name ?? agent;
  const { head } = await troupe.state(conversation);
  for (let after = Math.max(0, head - MOST_TOLD); after < head;) {
    const { events } = await troupe.events(conversation, { after });
    for (const event of events) yield* messageUpdate(event, nameOf);
    const last = events.at(-1);
    if (!last) return;
    after = last.seq;
  }
}
