import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { loadStdioDoors } from '../../library/runtime/doors.ts';
import { authorNamed } from '../client/client.ts';
import { type ClientOptions, credentialOf, openTroupe, placeOf } from '../client/connect.ts';
import { onInterrupt } from '../process/terminal.ts';
import { version } from '../process/version.ts';

interface StdioOptions extends ClientOptions {
  as?: string;
}

/** An MCP server at stdin and stdout, until its client disconnects. The troupe is in this process, or behind a URL. */
export async function mcp(options: StdioOptions): Promise<void> {
  // Stdout carries the protocol, so whatever an agents file prints goes to stderr.
  console.log = console.error;
  const { relayMcp, serveMcp } = await loadStdioDoors('troupe mcp');
  const ending = new AbortController();
  const dispose = onInterrupt(() => ending.abort());
  process.stdin.once('close', () => ending.abort());
  const place = placeOf(options, { mayCreate: true });
  const parts = { clock: systemClock, version: version(), signal: ending.signal };
  try {
    if ('url' in place) {
      await relayMcp({ ...parts, url: mcpAddress(place.url), credential: credentialOf(process.env) });
      return;
    }
    await using troupe = await openTroupe(place.dir, options, { needs: 'work' });
    await serveMcp({ ...parts, troupe, author: authorNamed(options.as) });
  } finally {
    dispose();
  }
}

function mcpAddress(url: string): URL {
  if (!URL.canParse(url)) throw new TroupeError('config_invalid', `"${url}" is not a URL`, { url });
  return new URL(`${url.replace(/(?<!\/)\/+$/, '')}/api/mcp`);
}

/** Serves an editor in this process with the Agent Client Protocol, at stdin and stdout, until the editor disconnects. */
export async function acp(options: StdioOptions): Promise<void> {
  // Stdout carries the protocol, so whatever an agents file prints goes to stderr.
  console.log = console.error;
  const { serveAcp } = await loadStdioDoors('troupe acp');
  const place = placeOf(options, { mayCreate: true });
  if ('url' in place) throw elsewhere(place.url);
  const ending = new AbortController();
  const dispose = onInterrupt(() => ending.abort());
  try {
    await using troupe = await openTroupe(place.dir, options, { needs: 'work' });
    const author = authorNamed(options.as);
    const parts = { troupe, clock: systemClock, author, version: version(), signal: ending.signal };
    await serveAcp(parts);
  } finally {
    dispose();
  }
}

function elsewhere(url: string): TroupeError {
  const message = `the data directory is open at ${url}: stop that process, or give another --data; an editor talks to a company in its own process`;
  return new TroupeError('config_invalid', message, { url });
}
