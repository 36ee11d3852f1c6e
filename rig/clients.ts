import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from '../test/support/engine-random.ts';
import { AGENT_IDS } from './agents.ts';

/** A message that a client wants in the log, and what the client knows about it. */
export interface Post {
  conversation: string;
  id: string;
  content: string;
  to: string[];
  /** Number of requests sent for it. */
  tries: number;
  /** The first acknowledgement; null if there is none yet. */
  acked: { seq: number; at: number } | null;
}

/** An answer that no fault explains: a refusal, a conflict, another seq for the same id. */
export interface Misanswer {
  what: string;
  status: number;
  body: string;
}

export interface Clients {
  posts: Post[];
  /** Turns whose cancellation was acknowledged. */
  cancelled: string[];
  misanswers: Misanswer[];
  /** Starts a burst of messages in one conversation. */
  burst(): void;
  /** Sends one message to one agent, which begins a conversation. */
  begin(): Post;
  /** Requests the cancellation of the agent's current turn, once. */
  cancel(conversation: string, agent: string): void;
  /** Number of requests that are not acknowledged yet. */
  open(): number;
}

export interface ClientOptions {
  random: Random;
  conversations: number;
  apis: () => string[];
  /** Token for the APIs. */
  token: string;
}

const PATIENCE_MS = 2_500;
/**
 * Upper bound of the timeout, which grows with every try: on a slow machine, repeating a request that is still being
 * answered makes everything slower.
 */
const MOST_PATIENCE_MS = 20_000;
const FIRST_PAUSE_MS = 50;
const MOST_PAUSE_MS = 800;
const AGAIN = 0.05;
/**
 * Maximum number of messages at once. Messages to a busy agent are answered by its next turn, so a burst is few
 * turns.
 */
const BURST = 14;
/** Share of messages to everybody. */
const TO_ALL = 0.03;
const AUTHOR = { kind: 'user', id: 'u1', name: 'Ana' } as const;

/**
 * Well-behaved clients: each message has its own id, and the same request is repeated, at any API, until it is
 * acknowledged.
 */
export function createClients({ random, conversations, apis, token }: ClientOptions): Clients {
  const posts: Post[] = [];
  const cancelled: string[] = [];
  const misanswers: Misanswer[] = [];
  const lengths = new Map<string, number>();
  let open = 0;

  function burst(): void {
    const started = lengths.size;
    // Every conversation begins before any is revisited.
    const number = started < conversations ? started : Math.floor(random() * conversations);
    const conversation = `k${number}`;
    const favourite = anyAgent();
    const size = 1 + Math.floor(random() * BURST);
    for (let i = 0; i < size; i++) post(conversation, random() < TO_ALL ? [...AGENT_IDS] : [favourite]);
  }

  function post(conversation: string, to: string[]): Post {
    const at = lengths.get(conversation) ?? 0;
    lengths.set(conversation, at + 1);
    const id = `${conversation}-m${at}`;
    const content = `${id}: please see to seat ${Math.floor(random() * 1e6)}`;
    const made: Post = { conversation, id, content, to, tries: 0, acked: null };
    posts.push(made);
    void deliver(made);
    return made;
  }

  function anyAgent(): string {
    return AGENT_IDS[Math.floor(random() * AGENT_IDS.length)] ?? AGENT_IDS[0];
  }

  async function deliver(post: Post): Promise<void> {
    open += 1;
    for (let tries = 0; post.acked === null; tries += 1) {
      if (await attempt(post, Math.min(PATIENCE_MS * 1.5 ** tries, MOST_PATIENCE_MS))) break;
      await wait(Math.min(FIRST_PAUSE_MS * 2 ** tries, MOST_PAUSE_MS) * (0.5 + random()));
    }
    open -= 1;
    if (random() < AGAIN) await attempt(post, PATIENCE_MS);
  }

  /** True if further tries are pointless. */
  async function attempt(post: Post, patienceMs: number): Promise<boolean> {
    const { conversation, id, content, to } = post;
    const body = { id, author: AUTHOR, to, content };
    const answer = await request(`/api/conversations/${conversation}/events`, body, patienceMs);
    if (answer === null) return false;
    post.tries += 1;
    if (isOutage(answer)) return false;
    const seq = seqOf(answer.body);
    if ((answer.status === 201 || answer.status === 200) && seq !== null) {
      if (post.acked && post.acked.seq !== seq)
        misanswers.push({ what: `post ${id}, acknowledged as ${post.acked.seq}`, ...answer });
      post.acked ??= { seq, at: Date.now() };
      return true;
    }
    misanswers.push({ what: `post ${id}`, ...answer });
    return true;
  }

  async function cancel(conversation: string, agent: string): Promise<void> {
    const listed = await request(`/api/conversations/${conversation}/actors`);
    if (listed?.status !== 200) return;
    const { actors } = JSON.parse(listed.body) as { actors: { agent: string; turn: string | null }[] };
    const turn = actors.find((actor) => actor.agent === agent)?.turn;
    if (turn === null || turn === undefined) return;
    const answer = await request('/api/commands', { command: 'abort', turn });
    if (answer === null || isOutage(answer)) return; // Not acknowledged; it may or may not have been received.
    if (answer.status === 202) cancelled.push(turn);
    // Refused: the turn has ended meanwhile, or the conversation has no such turn.
    else if (answer.status !== 409) misanswers.push({ what: `abort ${turn}`, ...answer });
  }

  async function request(
    path: string,
    body?: unknown,
    patienceMs = PATIENCE_MS,
  ): Promise<{ status: number; body: string } | null> {
    const urls = apis();
    const url = urls[Math.floor(random() * urls.length)];
    if (url === undefined) return null;
    try {
      const response = await fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(patienceMs),
      });
      return { status: response.status, body: await response.text() };
    } catch {
      return { status: 0, body: '' }; // Killed, stopped or reset: no answer means no acknowledgement.
    }
  }

  return {
    posts,
    cancelled,
    misanswers,
    burst,
    begin: () => post(`k${lengths.size}`, [anyAgent()]),
    cancel: (conversation, agent) => void cancel(conversation, agent),
    open: () => open,
  };
}

function isOutage({ status }: { status: number }): boolean {
  return status === 0 || status === 503;
}

function seqOf(body: string): number | null {
  try {
    const { event } = JSON.parse(body) as { event?: { seq?: unknown } };
    return typeof event?.seq === 'number' ? event.seq : null;
  } catch {
    return null;
  }
}
