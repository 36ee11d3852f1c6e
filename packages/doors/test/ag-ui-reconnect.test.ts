import type { HttpAgent, Message } from '@ag-ui/client';
import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { calmFetch, type Client, clientOf, lines } from './ag-ui-client.ts';
import { openStage, type Stage } from './stage.ts';
import { REPLY, STORY } from './story.ts';

const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };

function desk(): Promise<Stage> {
  return openStage(['desk', 'billing'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: {
      desk: [{ reasoning: 'Hm, hm.', text: 'One moment, please.', chunk: 6, ...HANDOFF }],
      billing: [
        { text: 'It was lost on the way', chunk: 6, breaks: { after: 3, how: 'cut' } },
        { text: 'It is refunded now.', chunk: 6 },
      ],
    },
  });
}

/** Breaks off the first answer after this many frames with `text`, like a lost connection. Later answers are complete. */
function breaking(text: string, after: number): HttpAgent['fetch'] {
  let isFirst = true;
  return (url, init) => {
    if (!isFirst) return fetch(url, init);
    isFirst = false;
    const frames = text.split('\n\n').slice(0, after);
    const headers = { 'content-type': 'text/event-stream' };
    return Promise.resolve(new Response(frames.map((frame) => `${frame}\n\n`).join(''), { headers }));
  };
}

async function recorded(url: string): Promise<{ text: string; client: Client }> {
  let text = '';
  const client = clientOf(url, {
    fetch: async (to, init) => {
      const answer = await fetch(to, init);
      text = await answer.text();
      return new Response(text, { headers: answer.headers });
    },
  });
  await client.say('u1', 'Refund it.');
  return { text, client };
}

test('a connection may break anywhere: whoever posts again has every word once', async () => {
  await using stage = await desk();
  const url = `${stage.url}/api/conversations/c1/ag-ui?to=desk`;
  const { text, client } = await recorded(url);
  const whole = lines(client.agent.messages).filter((line) => !line.startsWith('reasoning'));
  expect(whole).toEqual([
    expect.stringMatching(/^user .*Refund it\.$/),
    'assistant Desk: One moment, please.',
    'call Desk: handoff {"to":"billing","goal":"refund"}',
    expect.stringMatching(/^tool /),
    'assistant Billing: It is refunded now.',
  ]);
  const frames = text.split('\n\n').length;
  expect(frames).toBeGreaterThan(20);
  for (let after = 1; after < frames; after += 1) {
    const late = clientOf(url, { fetch: breaking(text, after) });
    await late.say('u1', 'Refund it.');
    await late.agent.runAgent();
    const { messages } = late.agent;
    const without = (role: string) => messages.filter((message) => message.role !== role);
    const named = (all: string[]) => all.map((line) => line.replace('user User: ', 'user '));
    expect([after, ...named(lines(without('reasoning')))]).toEqual([after, ...named(whole)]);
    expect([after, 'Hm, hm.'.startsWith(thoughts(messages))]).toEqual([after, true]);
  }
  expect(stage.requests('desk')).toHaveLength(1);
});

function thoughts(messages: readonly Message[]): string {
  return messages.flatMap((each) => (each.role === 'reasoning' ? [each.content] : [])).join('');
}

test('a client without messages gets the conversation, and one with others gets it in order', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['One.', 'Two.', 'Three.'] } });
  const url = `${stage.url}/api/conversations/c1/ag-ui`;
  const ana = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  await stage.troupe.ask('c1', { author: ana, to: ['bo'], content: 'First.' });
  await stage.troupe.ask('c1', { author: ana, to: ['bo'], content: 'Second.' });
  const empty = clientOf(url);
  await empty.agent.runAgent();
  const before = ['user Ana: First.', 'assistant bo: One.', 'user Ana: Second.', 'assistant bo: Two.'];
  expect(lines(empty.agent.messages)).toEqual(before);
  const stale = clientOf(url);
  stale.agent.setMessages([
    { id: 'x1', role: 'assistant', content: 'Of another conversation.' },
    ...empty.agent.messages.slice(2, 3),
  ]);
  await stale.say('u3', 'Third.');
  expect(lines(stale.agent.messages).map((line) => line.replace('User: ', ''))).toEqual([
    ...before,
    'user Third.',
    'assistant bo: Three.',
  ]);
  await empty.agent.runAgent();
  await empty.say('u4', 'Fourth.');
  expect(lines(empty.agent.messages).slice(4, 6)).toEqual(['user User: Third.', 'assistant bo: Three.']);
});

test('what others say during a run is told as theirs', async () => {
  const answering = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  await using stage = await openStage(['bo', 'cy'], {
    answers: {
      async bo() {
        asked.resolve();
        await answering.promise;
        return { text: 'At last.' };
      },
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui?to=bo`);
  const run = client.say('u1', 'Go.');
  await asked.promise;
  const ben = { kind: 'user', id: 'ben', name: 'Ben' } as const;
  await stage.troupe.ask('c1', { author: ben, to: ['cy'], content: 'And you?' });
  answering.resolve();
  await run;
  expect(lines(client.agent.messages)).toEqual([
    'user Go.',
    'user Ben: And you?',
    'assistant cy: cy answers 1',
    'assistant bo: At last.',
  ]);
});

test('a client whose server was killed in the middle of a reply posts again, and has every word once', async () => {
  using place = workplace({ agents: STORY });
  const first = await place.dev(['--data', 'kept']);
  const path = '/api/conversations/c1/ag-ui';
  const client = clientOf(first.url + path, { fetch: calmFetch });
  const begun = Promise.withResolvers<void>();
  let heard = '';
  client.agent.subscribe({
    onTextMessageContentEvent({ event }) {
      heard += event.delta;
      if (heard.length > 10) begun.resolve();
    },
  });
  const broken = client.say('u1', 'Tell me.');
  await begun.promise;
  first.child.kill('SIGKILL');
  await first.exited;
  await broken;
  expect(heard.length).toBeLessThan(REPLY.length);
  await using second = await place.dev(['--data', 'kept']);
  client.agent.url = second.url + path;
  await client.agent.runAgent();
  expect(lines(client.agent.messages)).toEqual(['user Tell me.', `assistant bo: ${REPLY}`]);
  // What the client already had was not sent again.
  expect(heard).toBe(REPLY);
  const { events } = (await (await fetch(`${second.url}/api/conversations/c1/events`)).json()) as {
    events: { kind: string }[];
  };
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(2);
});
