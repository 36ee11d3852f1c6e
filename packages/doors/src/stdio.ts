import { Readable, Writable } from 'node:stream';
import type { StdioParts } from './troupe.ts';

export { relayMcp, serveMcp } from './mcp/stdio.ts';

/** Serves an editor with the Agent Client Protocol, until it disconnects. */
export async function serveAcp(parts: StdioParts): Promise<void> {
  const [acp, { ndJsonStream }] = await Promise.all([
    import('./acp/serve-acp.ts'),
    import('@agentclientprotocol/sdk'),
  ]);
  await acp.serveAcp(parts, ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
