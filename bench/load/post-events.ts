import { Agent, request } from 'node:http';

export interface Posted {
  /** From the request to its answer, ms, of each event in the order in which they were sent. */
  delays: number[];
  /** Answers that were no 201, by status. */
  refused: Map<number, number>;
  /** How many were stored, by conversation. */
  stored: Map<string, number>;
}

/**
 * Events at a steady rate, each sent when it is due whether the ones before it were answered or not: a server that falls
 * behind is seen in the delays, not in a lower rate.
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
