import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { describeError } from './describe-error.ts';
import type { McpHost } from './host.ts';
import { type Event, messageText } from '../troupe.ts';

/** Newest conversations that are listed. */
const LISTED = 50;
/** Newest events of a conversation that are shown, and the longest text of a resource, in characters. */
const MOST_EVENTS = 500;
const MOST_CHARS = 100_000;
const MARKDOWN = 'text/markdown';

/** Conversations, and the prompts that models were sent. */
export function addResources(server: McpServer, host: McpHost): void {
  if (!host.scopes.includes('read')) return;
  const { troupe } = host;
  const reading = <T>(work: () => Promise<T>) => orProblem(host, () => host.read(work));
  server.registerResource(
    'conversation',
    new ResourceTemplate('troupe://conversations/{conversation}', {
      list: () =>
        reading(async () => {
          const { conversations } = await troupe.listConversations({ limit: LISTED });
          return {
            resources: conversations.map(({ id, at }) => ({
              uri: `troupe://conversations/${encodeURIComponent(id)}`,
              name: id,
              mimeType: MARKDOWN,
              annotations: { lastModified: new Date(at).toISOString() },
            })),
          };
        }),
    }),
    {
      title: 'A conversation',
      description: `What people and agents have said, the newest ${MOST_EVENTS} events at most`,
      mimeType: MARKDOWN,
    },
    (uri, { conversation }) =>
      reading(async () => {
        const name = decoded(conversation);
        const { head } = await troupe.events(name, { limit: 1 });
        const { events } = await troupe.events(name, {
          after: Math.max(0, head - MOST_EVENTS),
          limit: MOST_EVENTS,
        });
        return textOf(uri, MARKDOWN, transcriptOf(name, events, MOST_CHARS));
      }),
  );
  server.registerResource(
    'prompt',
    new ResourceTemplate('troupe://prompts/{turn}', { list: undefined }),
    {
      title: 'The prompt of a turn',
      description: 'What the model was sent in a turn of an agent, such as hello:coder:1',
      mimeType: 'application/json',
    },
    (uri, { turn }) =>
      reading(async () => {
        const { tools, messages } = await troupe.promptOf(decoded(turn));
        const text = JSON.stringify({ tools, messages }, null, 1);
        return textOf(uri, 'application/json', text.slice(0, MOST_CHARS).toWellFormed());
      }),
  );
}

function decoded(name: unknown): string {
  try {
    return decodeURIComponent(String(name));
  } catch {
    const message =
      'the address of the resource is not valid: each % is followed by the two digits of a byte of UTF-8';
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  }
}

function textOf({ href }: URL, mimeType: string, text: string) {
  return { contents: [{ uri: href, mimeType, text }] };
}

async function orProblem<T>(host: McpHost, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, describeError(error, host));
  }
}

/** Words of events, one paragraph each, with authors and seqs; the newest that fit in `mostChars`. */
export function transcriptOf(conversation: string, events: readonly Event[], mostChars: number): string {
  const kept: string[] = [];
  let left = mostChars;
  let dropped = 0;
  for (const event of events.toReversed()) {
    const text = wordsOf(event);
    if (text === null) continue;
    const { kind, name } = event.author;
    const paragraph = `**${kind === 'agent' ? '@' : ''}${oneLine(name)}** (${event.seq}): ${text}`;
    if (paragraph.length > left) {
      dropped = event.seq;
      break;
    }
    left -= paragraph.length;
    kept.unshift(paragraph);
  }
  const more = dropped > 0 ? [`(Up to event ${dropped} it is not shown.)`] : [];
  return [`# ${conversation}`, ...more, ...kept].join('\n\n');
}

/** Null: nothing that people read. */
function wordsOf(event: Event): string | null {
  if (event.kind === 'message' || event.kind === 'notice') return messageText(event.body);
  if (event.kind === 'step') return event.body.content || null;
  if (event.kind === 'question') return `asks: ${event.body.text}`;
  if (event.kind !== 'approval.requested') return null;
  return `waits for approval to call ${event.body.tool} ${event.body.args}`;
}

function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}*]+/gu, ' ');
}
