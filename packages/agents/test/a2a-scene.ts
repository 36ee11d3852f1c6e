import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { createA2a } from '../src/a2a/a2a.ts';
import type { FakeReply } from '../../testing/src/fake-vendors.ts';
import type { MakeProvider, ProviderScene } from '../../testing/src/provider-conformance.ts';

const IDS = { taskId: 't1', contextId: 'c1' };
/** The protocol's states for the failures that it can express. It cannot express others. */
const STATES: Partial<Record<string, string>> = {
  provider_failed: 'TASK_STATE_FAILED',
  provider_refused: 'TASK_STATE_REJECTED',
  provider_auth: 'TASK_STATE_AUTH_REQUIRED',
};
const STATUSES: Partial<Record<string, number>> = {
  provider_rate_limited: 429,
  provider_overloaded: 503,
};

/** A remote agent on 127.0.0.1 that plays the scene over JSON-RPC. */
export const a2a: MakeProvider = async (scene, replyLimits) => {
  if (!applies(scene)) return null;
  const sent: { gone: Promise<void> }[] = [];
  const first = Promise.withResolvers<{ gone: Promise<void> }>();
  const server = createServer((request, response) => void answer(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/.well-known/agent-card.json') {
      const at = { url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' };
      response.end(JSON.stringify({ supportedInterfaces: [at], capabilities: { streaming: true } }));
      return;
    }
    const { method } = JSON.parse(await textOf(request)) as { method: string };
    if (method !== 'SendStreamingMessage') {
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} }));
      return;
    }
    const seen = { gone: new Promise<void>((resolve) => response.once('close', resolve)) };
    sent.push(seen);
    first.resolve(seen);
    if (scene !== 'unreachable') play(scene, response);
  }

  async function close(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  if (scene === 'unreachable') await close();
  return {
    provider: createA2a({ url, replyLimits }),
    requests: () => sent.length,
    arrived: () => first.promise,
    [Symbol.asyncDispose]: () => (scene === 'unreachable' ? Promise.resolve() : close()),
  };
};

function applies(scene: ProviderScene): boolean {
  if (scene === 'unreachable') return true;
  // A remote agent calls no tools of ours, and reports neither usage, nor reasoning, nor why it ended.
  if (scene.calls || scene.stop || scene.usage !== undefined || scene.reasoning || scene.raw) return false;
  // A stream that breaks is rejoined: see `a2a.test.ts`.
  if (scene.breaks && scene.breaks.how !== 'hang') return false;
  const { error } = scene;
  return !error || (!error.retryAfter && (error.code in STATES || error.code in STATUSES));
}

function play({ text = '', chunk = 8, hang, breaks, error }: FakeReply, response: ServerResponse): void {
  const status = error && STATUSES[error.code];
  if (status !== undefined) {
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":"not now"}');
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (hang) return response.flushHeaders();
  const tell = (result: object) =>
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
  const state = (name: string) => ({ state: name, timestamp: '2026-01-01T00:00:00Z' });
  tell({ task: { id: IDS.taskId, contextId: IDS.contextId, status: state('TASK_STATE_WORKING') } });
  const letters = Array.from(text);
  const pieces = breaks?.after ?? error?.after ?? (error ? 0 : Math.ceil(letters.length / chunk));
  for (let piece = 0; piece < pieces; piece += 1) {
    const words = letters.slice(piece * chunk, (piece + 1) * chunk).join('');
    const artifact = { artifactId: 'a', parts: [{ text: words }] };
    tell({ artifactUpdate: { ...IDS, artifact, append: piece > 0 } });
  }
  if (breaks) return;
  const message = error && { messageId: 'm1', role: 'ROLE_AGENT', parts: [{ text: 'It did not work.' }] };
  const end = (error && STATES[error.code]) ?? 'TASK_STATE_COMPLETED';
  tell({ statusUpdate: { ...IDS, status: { ...state(end), ...(message && { message }) } } });
  response.end();
}
