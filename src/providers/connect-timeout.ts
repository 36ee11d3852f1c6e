/**
 * Node's fetch waits 10 s for a connection and 300 s for headers and between chunks, and has no option for either. Its
 * timers are half a second late, and the first call also loads an SDK: less than 5 s in all.
 */
const CONNECT_TIMEOUT_MS = 3_500;

type AgentClass = new (options: Record<string, unknown>) => unknown;
let options: { dispatcher?: unknown } | undefined;

/**
 * Fetch options with a short connect timeout and no other (silence is watched by guard-stream). The class is taken
 * from Node's own dispatcher, which appears with the first fetch, so that undici need not be a dependency and a
 * proxy set for Node (NODE_USE_ENV_PROXY) stays in force. Where Node has none, fetch keeps its defaults.
 */
export async function fetchOptions(): Promise<Record<string, unknown>> {
  if (options) return options;
  await fetch('data:,');
  const current = (globalThis as Record<symbol, unknown>)[Symbol.for('undici.globalDispatcher.1')];
  if (typeof current !== 'object' || current === null) return (options = {});
  try {
    const Agent = current.constructor as AgentClass;
    const connect = { timeout: CONNECT_TIMEOUT_MS };
    options = { dispatcher: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 }) };
  } catch {
    // A dispatcher of the user's own (undici.setGlobalDispatcher) may be constructed otherwise; it is left in force.
    options = {};
  }
  return options;
}
