import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { REPLY, STORY } from './story.ts';

/** The text of a stream until it ends, breaks off, or is long enough for `enough`. */
async function heard(url: string, enough: (text: string) => boolean): Promise<string> {
  const client = new OpenAI({ baseURL: `${url}/api/conversations/c1/v1`, apiKey: 'none', maxRetries: 0 });
  const stream = await client.chat.completions.create(
    { model: 'bo', messages: [{ role: 'user', content: 'Tell me.' }], stream: true },
    { headers: { 'idempotency-key': 'story' } },
  );
  let text = '';
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    if (enough(text)) break;
  }
  return text;
}

test('a reader whose server was killed in the middle of a reply asks again, and has every word once', async () => {
  using place = workplace({ agents: STORY });
  const first = await place.dev(['--data', 'kept']);
  const begun = await heard(first.url, (text) => text.length > 10);
  expect(REPLY.startsWith(begun)).toBe(true);
  first.child.kill('SIGKILL');
  await first.exited;
  await using second = await place.dev(['--data', 'kept']);
  expect(await heard(second.url, () => false)).toBe(REPLY);
  // The repeated request was no second message.
  expect(await heard(second.url, () => false)).toBe(REPLY);
  const { events } = (await (await fetch(`${second.url}/api/conversations/c1/events`)).json()) as {
    events: { kind: string }[];
  };
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(2);
});
