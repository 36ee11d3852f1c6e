import type { WebSocket } from 'ws';
import { openRelayServer, serveParent } from './relay-server.ts';
import type { Behaviour } from './relay-process.ts';

/** The process of `startHostileRelay`. */
const subscriptions = new Map<WebSocket, Set<string>>();
const sent = new Map<WebSocket, number>();
let behaviour: Behaviour = {};

const server = await openRelayServer(0, {
  connected: (client) => void subscriptions.set(client, new Set()),
  closed: (client) => void subscriptions.delete(client),
  frame(client, [kind, second], text) {
    if (behaviour.longest && text.length > behaviour.longest.chars) {
      return refuse(client, behaviour.longest.otherwise);
    }
    if (kind === 'CLOSE') subscriptions.get(client)?.delete(String(second));
    if (kind === 'EVENT' && behaviour.ok !== null) {
      const { accepted, reason } = behaviour.ok ?? { accepted: true, reason: '' };
      send(client, JSON.stringify(['OK', (second as { id?: string }).id, accepted, reason]));
    }
    if (kind === 'EVENT' && behaviour.echo) {
      const names = subscriptions.get(client) ?? [];
      for (const name of names) send(client, JSON.stringify(['EVENT', name, second]));
    }
    if (kind === 'REQ') serve(client, String(second));
  },
  execute(command) {
    if (command.do === 'behave') behaviour = { ...behaviour, ...command.how };
    if (command.do !== 'push') return;
    for (const [client, names] of subscriptions) {
      for (const frame of command.frames) {
        if (!frame.includes('$sub')) send(client, frame);
        else for (const name of names) send(client, frame.replaceAll('$sub', name));
      }
    }
  },
});
serveParent(server);

function refuse(client: WebSocket, how: 'notice' | 'close' | 'cut'): void {
  if (how === 'notice') send(client, '["NOTICE","ERROR: message too large"]');
  else if (how === 'close') client.close(1009);
  else client.terminate();
}

function serve(client: WebSocket, name: string): void {
  subscriptions.get(client)?.add(name);
  for (const event of behaviour.stored ?? []) {
    for (let n = behaviour.times ?? 1; n > 0; n--) send(client, `["EVENT",${JSON.stringify(name)},${event}]`);
  }
  if (behaviour.eose ?? true) send(client, JSON.stringify(['EOSE', name]));
  if (behaviour.flood != null) flood(client, behaviour.flood.replaceAll('$sub', name));
}

/** Sends as fast as the socket takes it: unread data stays in the kernel, not in this process. */
function flood(client: WebSocket, frame: string): void {
  if (client.readyState !== client.OPEN || behaviour.flood == null) return;
  let pending = 200;
  for (let n = pending; n > 0; n--) {
    client.send(frame, () => {
      pending -= 1;
      if (pending === 0) setImmediate(() => flood(client, frame));
    });
  }
}

function send(client: WebSocket, frame: string): void {
  if (client.readyState !== client.OPEN) return;
  client.send(frame);
  const count = (sent.get(client) ?? 0) + 1;
  sent.set(client, count);
  if (behaviour.dropAfter != null && count >= behaviour.dropAfter) {
    sent.delete(client);
    client.close();
  }
}
