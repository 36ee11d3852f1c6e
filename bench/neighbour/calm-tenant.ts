import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { postJson } from './post-json.ts';
import type { System } from './system.ts';

/** What a tenant experiences: ms from when a message was due to its answer 201, and to the end of its turn. */
export interface Felt {
  appends: number[];
  answers: number[];
  /** Messages whose turn had not ended by the end of the wait. They count as if it had ended then. */
  unanswered: number;
  /** Messages that were not accepted at all: refused, or the connection ended. */
  refused: number;
}

/** A rate that the slower setup sustains: two systems of three processes, a database and Redis on two cores. */
const PER_SECOND = { embedded: 20, distributed: 10 };
const CONVERSATIONS = 40;
const LAST_ANSWERS_MS = 10_000;
const OPENING_MS = 10_000;

/** Sends messages at a steady rate in its own tenant, each when it is due, and waits for the answers. */
export async function listenAsCalm(
  system: System,
  { seconds, isOffBeat = false }: { seconds: number; isOffBeat?: boolean },
): Promise<Felt> {
  const perSecond = PER_SECOND[system.mode];
  const turns = await watchTurns(system);
  const appends: number[] = [];
  let refused = 0;
  const due = new Map<string, number>();
  // Two tenants on two systems take turns, so that neither waits for the other in this process.
  const began = performance.now() + (isOffBeat ? 500 / perSecond : 0);
  const sent: Promise<void>[] = [];
  for (let index = 0; index < perSecond * seconds; index++) {
    const at = began + (index * 1_000) / perSecond;
    await until(at);
    sent.push(say(index, at));
  }
  await Promise.all(sent);
  const deadline = performance.now() + LAST_ANSWERS_MS;
  while (due.size > turns.endedOf(due) && performance.now() < deadline) await until(performance.now() + 20);
  turns.close();
  const ends = [...due].map(([key, at]) => (turns.ended.get(key) ?? deadline) - at);
  return { appends, answers: ends, unanswered: due.size - turns.endedOf(due), refused };

  async function say(index: number, at: number): Promise<void> {
    const conversation = `calm-${index % CONVERSATIONS}`;
    const body = {
      author: { kind: 'user', id: 'ana', name: 'Ana' },
      to: ['calm'],
      content: `Note ${index}.`,
    };
    const { status, json } = await postJson(system.url, `/api/conversations/${conversation}/events`, {
      key: system.keys.calm,
      body,
    }).catch(() => ({ status: 0, json: null }));
    appends.push(performance.now() - at);
    if (status !== 201) return void (refused += 1);
    due.set(`${conversation}/${(json as { event: { seq: number } }).event.seq}`, at);
  }
}

interface Turns {
  /** End of the turn that answered a message, by `conversation/seq`. */
  ended: ReadonlyMap<string, number>;
  endedOf(due: ReadonlyMap<string, number>): number;
  close(): void;
}

/** A system that is too busy to open a stream shows no turn: all messages count as not answered. */
async function watchTurns({ url, keys }: System): Promise<Turns> {
  const ended = new Map<string, number>();
  const headers = { authorization: `Bearer ${keys.calm}` };
  const asked = get(`${url}/api/events`, { headers, agent: false });
  asked.on('error', () => {});
  const turns: Turns = {
    ended,
    endedOf: (due) => [...due.keys()].filter((key) => ended.has(key)).length,
    close: () => void asked.destroy(),
  };
  const answered = once(asked, 'response', { signal: AbortSignal.timeout(OPENING_MS) });
  const [response] = (await answered.catch(() => [])) as IncomingMessage[];
  if (!response) return turns;
  let rest = '';
  response.setEncoding('utf8');
  response.on('error', () => {});
  response.on('data', (text: string) => {
    const now = performance.now();
    const parts = (rest + text).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) for (const key of coveredBy(part)) ended.set(key, now);
  });
  return turns;
}

function coveredBy(message: string): string[] {
  const data = /^data: (.*)$/m.exec(message)?.[1];
  if (data?.includes('"turn.done"') !== true) return [];
  const parsed = JSON.parse(data) as TurnDone & { event?: TurnDone };
  const { kind, conversation, body } = parsed.event ?? parsed;
  return kind === 'turn.done' ? body.covers.map((seq) => `${conversation}/${seq}`) : [];
}

interface TurnDone {
  kind: string;
  conversation: string;
  body: { covers: number[] };
}

function until(at: number): Promise<void> {
  const early = at - performance.now();
  return early <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, early));
}
