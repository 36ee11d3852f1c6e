import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js';
import type { Link } from './link.ts';

/** An open connection. Nothing of it is used again once it is lost. */
export interface Session {
  client: Client;
  link: Link;
  isLost: () => boolean;
  /** The server is gone, or knows the session no more. */
  lose: (why: unknown) => void;
}

export interface SessionParts {
  timeoutMs: number;
  onToolsChanged: () => void;
  onLost: (why: string) => void;
}

const PING_MS = 5_000;
const MAX_PAGES = 100;

/** Throws why there is none; the link is then ended. */
export async function openSession(
  link: Link,
  { timeoutMs, onToolsChanged, onLost }: SessionParts,
): Promise<Session> {
  const [{ Client }, { ToolListChangedNotificationSchema }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  // Which of our versions asks is not told: no server should behave otherwise for it.
  const client = new Client({ name: 'troupe', version: '1' });
  client.setNotificationHandler(ToolListChangedNotificationSchema, onToolsChanged);
  try {
    await client.connect(link.transport, { timeout: timeoutMs });
  } catch (error) {
    // Before it is ended, which would then be the reason.
    const why = link.explain(error);
    await link.end();
    throw new Error(why);
  }
  let isLost = false;
  function lose(why: unknown): void {
    if (isLost) return;
    isLost = true;
    onLost(link.explain(why));
  }
  client.onclose = () => lose(new Error('it was closed'));
  if (link.breaksSilently) client.onerror = createWatch(client, lose);
  return { client, link, isLost: () => isLost, lose };
}

/** Looks after each error whether the server still answers, one look at a time. */
function createWatch(client: Client, onGone: (why: unknown) => void): () => void {
  let looking: Promise<void> | null = null;
  return () => {
    looking ??= client
      .ping({ timeout: PING_MS })
      .then(() => undefined, onGone)
      .finally(() => {
        looking = null;
      });
  };
}

/** All pages. Not `client.listTools`, which compiles each output schema and then refuses results that do not fit. */
export async function listTools(client: Client, timeoutMs: number): Promise<ListedTool[]> {
  const { ListToolsResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
    const listed = await client.request(request, ListToolsResultSchema, { timeout: timeoutMs });
    tools.push(...listed.tools);
    cursor = listed.nextCursor;
    if (cursor === undefined) return tools;
  }
  throw new Error(`its list of tools has more than ${MAX_PAGES} pages`);
}
