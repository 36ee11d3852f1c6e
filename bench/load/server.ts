import { createApp, serveHttp } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/index.ts';
import { defineTroupe } from '../../src/index.ts';
import { stop } from '../support.ts';

/**
 * The server under load, in a separate process: embedded, durable, with keys for two tenants. Sends its address and
 * keys to its parent, and its memory and CPU use on request. Arguments: data directory, JSON of more settings.
 */
const [data = ':memory:', more = '{}'] = process.argv.slice(2);
const settings = JSON.parse(more) as object;
const agents = [
  {
    id: 'agent',
    provider: 'scripted' as const,
    script: { rules: [{ reply: 'Noted.' }] },
  },
];
const troupe = await createTroupe(
  defineTroupe({ agents, doors: ['ag-ui', 'ai-sdk', 'mcp', 'openai'], ...settings }),
  {
    data,
    onWarning: (error, where) => (where.startsWith('nostr') ? undefined : stop(error, where)),
  },
);
const app = createApp(troupe, {
  authenticate: (credential: string) => troupe.authenticate(credential),
  keyless: 'refused',
  web: false,
  traffic: { requestsPerSecond: 10_000, messagesPerSecond: 10_000, streams: 1_000 },
});
const server = await serveHttp(app, { port: 0 });
const keyOf = async (tenant: string) =>
  (await troupe.forTenant(tenant).keys.create({ name: 'load', scopes: ['read', 'write', 'operate'] })).secret;
process.send?.({
  url: server.url,
  keys: { load: await keyOf('load'), other: await keyOf('other'), operator: await keyOf('default') },
});
process.on('message', () => {
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  process.send?.({ rss, heapUsed, external, cpuMs: (user + system) / 1_000 });
});
process.on('disconnect', () => process.exit(0));
