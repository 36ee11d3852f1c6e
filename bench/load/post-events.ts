import { Agent, request } from 'node:http';

export interface Posted {
  /** From the request to its answer, ms, per event in the order of sending. */
  delays: number[];
  /** Answers other than 201, by status. */
  refused: Map<number, number>;
  /** Number of stored events, by conversation. */
  stored: Map<string, number>;
}

/**
 * Sends events at a steady rate, each when it is due, whether or not earlier ones were answered. A server that falls
 * behind shows in the delays, not in a lower rate.
 */
export async function postEvents(options: {
  url: string;
  key: string;
  conversations: readonly string[];
  perSecond: number;
  seconds: number;
  content: (index: number) => string;
}): Promise<Posted> {
  const { url, key, conversations, perSecond, seconds, content } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const posted: Posted = { delays: [], refused: new Map(), stored: new Map() };
  const began = performance.now();
  const waiting: Promise<void>[] = [];
  for (let index = 0; index < perSecond * seconds; index++) {
    const due = began + (index * 1_000) / perSecond;
    const early = due - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    const conversation = conversations[index % conversations.length] ?? '';
    waiting.push(postOne(conversation, index, due));
  }
  await Promise.all(waiting);
  agent.destroy();
  return posted;

  async function postOne(conversation: string, index: number, due: number): Promise<void> {
    const body = JSON.stringify({
      author: { kind: 'user', id: `u${index % 50}`, name: 'Ana' },
      content: content(index),
      replyTo: 'none',
    });
    const status = await new Promise<number>((resolve, reject) => {
      const sent = request(
        `${url}/api/conversations/${conversation}/events`,
        {
          method: 'POST',
          agent,
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          },
        },
        (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
    posted.delays[index] = performance.now() - due;
    if (status === 201) posted.stored.set(conversation, (posted.stored.get(conversation) ?? 0) + 1);
    else posted.refused.set(status, (posted.refused.get(status) ?? 0) + 1);
  }
}
