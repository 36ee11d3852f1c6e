import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { a2aClient, Kept, said } from './a2a-client.ts';
import { REPLY, STORY } from './story.ts';

test('a client whose server was killed in the middle of a reply subscribes to the task, and has every word once', async () => {
  using place = workplace({ agents: STORY });
  const first = await place.dev(['--data', 'kept']);
  const begun = new Kept();
  for await (const event of (await a2aClient(first.url, 'bo')).sendMessageStream(said('Tell me.'))) {
    begun.take(event);
    if (begun.text.length > 10) break;
  }
  expect(REPLY.startsWith(begun.text)).toBe(true);
  first.child.kill('SIGKILL');
  await first.exited;
  await using second = await place.dev(['--data', 'kept']);
  const client = await a2aClient(second.url, 'bo');
  const { id, contextId } = begun.task!;
  const rest = new Kept();
  for await (const event of client.resubscribeTask({ tenant: '', id })) rest.take(event);
  expect(rest.text).toBe(REPLY);
  expect(rest.states.at(-1)).toBe('TASK_STATE_COMPLETED');
  const task = await client.getTask({ tenant: '', id });
  expect(task.artifacts.map(({ artifactId }) => artifactId)).toEqual([...rest.texts.keys()]);
  const { events } = (await (await fetch(`${second.url}/api/conversations/${contextId}/events`)).json()) as {
    events: { kind: string }[];
  };
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(2);
});
