import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { createTroupeClient } from '../src/index.ts';
import { REPLY, STORY } from '../../doors/test/story.ts';

test('a stream goes on after its server was killed in the middle of a reply, with every word and event once', async () => {
  using place = workplace({ agents: STORY });
  const first = await place.dev(['--data', 'kept']);
  const troupe = createTroupeClient({ url: first.url });
  const parts = troupe.stream('c1', { to: ['bo'], content: 'Tell me.' });
  let said = '';
  const seqs: number[] = [];
  let second: Awaited<ReturnType<typeof place.dev>> | undefined;
  let next = await parts.next();
  for (; !next.done; next = await parts.next()) {
    const { value } = next;
    if (value.type === 'text') said += value.text;
    if (value.type === 'void') said = '';
    if (value.type === 'event') seqs.push(value.event.seq);
    if (second || said.length < 10) continue;
    expect(REPLY.startsWith(said)).toBe(true);
    first.child.kill('SIGKILL');
    await first.exited;
    second = await place.dev(['--data', 'kept', '--port', new URL(first.url).port]);
  }
  await using _second = second;
  expect(said).toBe(REPLY);
  expect(next.value).toMatchObject({ text: REPLY, outcome: 'answered' });
  expect(seqs).toEqual(seqs.map((_, index) => index + 2));
});
