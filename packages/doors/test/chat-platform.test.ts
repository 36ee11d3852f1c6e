import { createSlackAdapter } from '@chat-adapter/slack';
import { createMemoryState } from '@chat-adapter/state-memory';
import { getRequestListener } from '@hono/node-server';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openRoom } from '../../../examples/chat-platform/room.ts';
import { createTroupeClient } from '../../client/src/index.ts';
import { DESK, openStage, type Stage } from './stage.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const SECRET = 'signing-secret';
const THREAD = '1700000000.000100';

type Call = { method: string; given: Record<string, string> };

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Slack's Web API, as far as the room uses it. Records every request. */
async function startSlack() {
  const calls: Call[] = [];
  const answers: Record<string, object> = {
    'auth.test': { user_id: 'UBOT', bot_id: 'BBOT', team_id: 'T1', user: 'troupe' },
    'users.info': { user: { id: 'U1', name: 'ana', real_name: 'Ana', profile: { real_name: 'Ana' } } },
  };
  const url = await listen((request, response) => {
    void request.toArray().then((parts) => {
      const method = request.url?.slice(1) ?? '';
      const given = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString()));
      const ts = `170000000${calls.push({ method, given })}.000200`;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ok: true, ts, message_ts: ts, ...answers[method] }));
    });
  });
  /** What the people in the room see, in order: who says what, and what replaces a card. */
  const shown = () =>
    calls
      .filter(({ method }) => /^chat\.(?!startStream)/.test(method))
      .map(({ given }) => `${given['username'] ?? 'app'}: ${given['markdown_text'] ?? given['text']}`);
  return { url, calls, shown };
}

/** The room over HTTP, as Slack calls it. */
async function startRoom({ url, troupe }: Stage, slackUrl: string, state = createMemoryState()) {
  const { secret } = await troupe.keys.create({ name: 'room', scopes: ['read', 'write'] });
  const slack = createSlackAdapter({ apiUrl: slackUrl, botToken: 'xoxb-1', signingSecret: SECRET });
  const left = new AbortController();
  const errors: unknown[] = [];
  const chat = openRoom({
    troupe: createTroupeClient({ url, token: secret }),
    slack,
    state,
    signal: left.signal,
    onError: (error) => errors.push(error),
  });
  const answer = getRequestListener((request) => chat.webhooks.slack(request));
  const at = await listen((incoming, outgoing) => void answer(incoming, outgoing));

  async function post(body: string, type: string, secretOfSlack = SECRET): Promise<number> {
    const time = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac('sha256', secretOfSlack).update(`v0:${time}:${body}`).digest('hex');
    const headers = {
      'content-type': type,
      'x-slack-request-timestamp': time,
      'x-slack-signature': `v0=${signature}`,
    };
    return (await fetch(at, { method: 'POST', body, headers })).status;
  }
  return {
    errors,
    end: () => left.abort(),
    event: async (event: object, secretOfSlack?: string) => {
      const message = { user: 'U1', channel: 'C1', channel_type: 'channel', ...event };
      const body = { type: 'event_callback', team_id: 'T1', event_id: crypto.randomUUID(), event: message };
      return post(JSON.stringify(body), 'application/json', secretOfSlack);
    },
    click: async (card: Call | undefined, button: string) => {
      const blocks = JSON.parse(card?.given['blocks'] ?? '[]') as { elements?: { action_id: string }[] }[];
      const pressed = blocks
        .flatMap(({ elements = [] }) => elements)
        .find((each) => each.action_id === button);
      const payload = {
        type: 'block_actions',
        team: { id: 'T1' },
        user: { id: 'U1', username: 'ana', name: 'Ana' },
        channel: { id: 'C1' },
        container: { type: 'message', message_ts: '1700000009.000200', channel_id: 'C1', thread_ts: THREAD },
        message: { ts: '1700000009.000200', thread_ts: THREAD },
        actions: [{ type: 'button', block_id: 'b', ...pressed }],
        trigger_id: 't',
      };
      const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
      return post(body, 'application/x-www-form-urlencoded');
    },
  };
}

test('a room of Slack: agents speak under their names, a button approves, and a new process goes on', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    ...DESK,
    isKeyed: true,
    fallback: 'desk',
    answers: { ...DESK.answers, billing: [...DESK.answers.billing, 'On Friday.'] },
  });
  const slack = await startSlack();
  const state = createMemoryState();
  const room = await startRoom(stage, slack.url, state);
  const until = (lines: string[]) => untilHolds(() => expect(slack.shown()).toEqual(lines));

  const mention = { type: 'app_mention', ts: THREAD, text: '<@UBOT> Refund order 4.' };
  expect(await room.event(mention, 'forged')).toBe(401);
  expect(slack.shown()).toEqual([]);
  expect(await room.event(mention)).toBe(200);
  const asked = ['Desk: One moment.', 'Billing: I refund it.', 'app: *Billing asks*\n`refund {"order":4}`'];
  await until(asked);
  // Slack repeats an event that it considers lost, and sends a mention twice.
  await room.event({ ...mention, type: 'message' });
  const card = slack.calls.find(({ given }) => given['blocks'] !== undefined);
  expect(card?.given).toMatchObject({ channel: 'C1', thread_ts: THREAD });

  expect(await room.click(card, 'approve')).toBe(200);
  const approved = [...asked, 'app: approved by Ana', 'Billing: Your money is back.'];
  await until(approved);
  expect(await room.click(card, 'refuse')).toBe(200);
  const told = [...approved, expect.stringMatching(/^app: Ana .* could not decide/) as string];
  await until(told);

  room.end();
  expect(room.errors).toEqual([]);
  const next = await startRoom(stage, slack.url, state);
  const when = { type: 'message', ts: '1700000001.000100', thread_ts: THREAD, text: '@billing When?' };
  expect(await next.event(when)).toBe(200);
  await until([...told, 'Billing: On Friday.']);

  const { events } = await stage.troupe.events(`slack:C1:${THREAD}`);
  const people = events.filter(({ author }) => author.kind === 'user');
  expect(people.map(({ kind, author, to }) => [kind, author.name, to])).toEqual([
    ['message', 'Ana', ['desk']],
    ['approval.decided', 'Ana', ['billing']],
    ['message', 'Ana', ['billing']],
  ]);
});
