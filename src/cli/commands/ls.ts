import { NEED } from '../../library/projection/needs.ts';
import type { StandingState } from '../../library/projection/standing.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { clip, number, paint, print, printJson, table } from '../render/output.ts';

export async function ls(conversation: string | undefined, options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    if (conversation === undefined) await listConversations(client, options);
    else await listActors(client, conversation, options);
  } finally {
    await client.close();
  }
}

const STATE_WORDS: Record<StandingState, string> = {
  failed: 'failed',
  asks: 'needs you',
  running: 'running',
  waiting: 'waiting',
  quiet: 'quiet',
};

async function listConversations(client: Client, { json }: ClientOptions): Promise<void> {
  const { lines: conversations, counts, unread, next } = await client.inbox();
  if (json) return printJson({ conversations, counts, unread });
  if (conversations.length === 0 && unread === 0) return print(paint('dim', 'no conversations yet'));
  const heads = ['conversation', 'state', 'events', 'last', 'about'].map((head) => paint('dim', head));
  const rows = conversations.map(({ id, state, head, at, about, failure, asks }) => [
    id,
    STATE_WORDS[state],
    number(head),
    timeText(at),
    clip(failure?.message || asks?.text || about?.text || '', 60),
  ]);
  print(table([heads, ...rows], [2]));
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (next !== null)
    print(paint('dim', `${number(conversations.length)} of ${number(all)}, the most urgent first`));
  if (unread > 0) print(paint('dim', `counting: ${number(unread)} left`));
}

async function listActors(client: Client, conversation: string, { json }: ClientOptions): Promise<void> {
  // Agents that need attention come first.
  const actors = (await client.actors(conversation)).toSorted(
    (a, b) => NEED.indexOf(a.status) - NEED.indexOf(b.status),
  );
  if (json) return printJson({ actors });
  if (actors.length === 0) return print(paint('dim', 'no agent has taken part yet'));
  const heads = ['agent', 'status', 'state', 'processed', 'turn', 'session', ''].map((head) =>
    paint('dim', head),
  );
  const rows = actors.map(
    ({ agent, status, state, lastProcessedIndex, turn, lastTurn, session, cursor, problem }) => [
      `@${agent}`,
      status,
      state,
      number(lastProcessedIndex),
      turn ?? lastTurn ?? '-',
      session ? clip(`${session.provider} ${session.id} to ${cursor ?? 0}`, 40) : '-',
      clip(problem ?? '', 80),
    ],
  );
  print(table([heads, ...rows], [3]));
}

function timeText(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}
