import { describe, expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, ConversationId } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { openTroupe } from '../support/mode.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const echo = { id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'hello' }] } };

describe('right after an answer', () => {
  test('a conversation can be deleted', async () => {
    await using troupe = await openTroupe({ agents: [echo] } as TroupeInput);
    for (let n = 1; n <= 10; n += 1) {
      await troupe.ask(`c${n}`, { author: ANA, to: ['bo'], content: 'hi' });
      expect(await troupe.delete(`c${n}`, { exported: 'none' })).toMatchObject({
        conversations: 1,
        actors: 1,
      });
    }
  });

  test('what the turn wrote last is deleted with it', async () => {
    await using troupe = await openTroupe({ agents: [echo] } as TroupeInput);
    await troupe.ask('c', { author: ANA, to: ['bo'], content: 'hi' });
    await troupe.delete('c', { exported: 'none' });
    await troupe.idle();
    await expect(troupe.state('c')).rejects.toMatchObject({ code: 'conversation_unknown' });
    await troupe.ask('c', { author: ANA, to: ['bo'], content: 'hi' });
    expect((await troupe.events('c')).events[0]).toMatchObject({ seq: 1, kind: 'message' });
  });
});

/** The lead has delegated, and the worker has asked a person. */
async function openTask(): Promise<{ troupe: Troupe; thread: ConversationId }> {
  const lead = {
    id: 'lead',
    provider: 'scripted' as const,
    tools: ['delegate'],
    script: {
      rules: [
        { when: { answer: 1 }, calls: [{ name: 'delegate', args: { to: 'worker', task: 'Find it.' } }] },
        { reply: 'The lead knows.' },
      ],
    },
  };
  const worker = {
    id: 'worker',
    provider: 'scripted' as const,
    tools: ['ask'],
    script: {
      rules: [
        { when: { answer: 1 }, calls: [{ name: 'ask', args: { question: 'Which one?', to: 'people' } }] },
        { reply: 'Found.' },
      ],
    },
  };
  const troupe = await openTroupe({ agents: [lead, worker] } as TroupeInput);
  await troupe.send('c', { author: ANA, to: ['lead'], content: 'Go.' });
  await troupe.idle();
  const { tasks } = await troupe.tasks('c', { open: true });
  return { troupe, thread: (tasks[0] as { thread: ConversationId }).thread };
}

describe('the thread of a task', () => {
  test('is not deleted while the task is open: the refusal names the task and what to do', async () => {
    const { troupe, thread } = await openTask();
    await using _ = troupe;
    await expect(troupe.delete(thread, { exported: 'none' })).rejects.toMatchObject({
      code: 'command_refused',
      message: expect.stringMatching(
        /is the thread of the open task d-\w+: cancel the task in c, or delete c$/,
      ),
    });
    expect((await troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
    expect(await troupe.delete('c', { exported: 'none' })).toMatchObject({ conversations: 2 });
  });

  test('is deleted once the task has ended', async () => {
    const { troupe, thread } = await openTask();
    await using _ = troupe;
    await troupe.command({ command: 'cancelTask', conversation: 'c', task: 'all' } as never, ANA);
    await troupe.idle();
    expect(await troupe.delete(thread, { exported: 'none' })).toMatchObject({ conversations: 1 });
  });
});
