import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { historyOf, lines, openChat } from './ui-chat.ts';
import { REPLY, STORY } from './story.ts';

const said = (chat: ReturnType<typeof openChat>) => lines(chat.messages).at(-1) ?? '';

test('a chat whose server was killed in the middle of a reply resumes, and shows every word once', async () => {
  using place = workplace({ agents: STORY });
  const first = await place.dev(['--data', 'kept']);
  const chat = openChat(first.url);
  const sending = chat.sendMessage({ text: 'Tell me.' });
  await expect.poll(() => said(chat)).toContain('bo: Once');
  first.child.kill('SIGKILL');
  await Promise.all([first.exited, sending]);
  expect(chat.status).toBe('error');
  expect(`bo: ${REPLY}`.startsWith(said(chat))).toBe(true);
  await using second = await place.dev(['--data', 'kept']);
  const again = openChat(second.url, { messages: chat.messages });
  await again.resumeStream();
  const whole = ['user: Tell me.', `bo: ${REPLY}`];
  expect(lines(again.messages)).toEqual(whole);
  // Another reader, who asks again with the message itself, gets the same.
  const other = openChat(second.url, { messages: chat.messages });
  await other.regenerate();
  expect(lines(other.messages)).toEqual(whole);
  expect(lines((await historyOf(second.url)).messages)).toEqual(whole);
});
