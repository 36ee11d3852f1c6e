import { expect, test } from 'vitest';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { type Company, company, ROOM, UMA } from '../support/company.ts';

const HANDOFF = { calls: [{ name: 'handoff', args: JSON.stringify({ to: 'sales', goal: 'sell it' }) }] };

function shop(afterHandoff?: 'receiver' | 'default'): Promise<Company> {
  return company(['desk', 'sales'], {
    agents: { desk: { tools: ['handoff'] } },
    answers: { desk: [HANDOFF, 'desk again'], sales: ['Which one?', 'sales again', 'sales once more'] },
    definition: {
      defaults: { respondWhenUnaddressed: 'desk' as AgentId, ...(afterHandoff && { afterHandoff }) },
    },
  });
}

/** The agents of the person's messages, in order. */
async function heard({ troupe }: Company): Promise<string[]> {
  const { events } = await troupe.events(ROOM);
  return events.flatMap(({ kind, author, to }) =>
    kind === 'message' && author.kind === 'user' ? [to.join()] : [],
  );
}

test('after a hand-over, messages without an addressee go to the agent that has the conversation', async () => {
  await using room = await shop();
  await room.say(UMA, null, 'I want to buy one');
  expect(await room.troupe.unaddressed(ROOM)).toBe('sales');
  await room.say(UMA, null, 'the blue one');
  expect(await heard(room)).toEqual(['desk', 'sales']);
  const { events } = await room.troupe.events(ROOM);
  expect(events.findLast(({ author }) => author.kind === 'user')?.context?.routed).toBe('handoff');
});

test('a message that names another agent goes to it, and the next one without a name back', async () => {
  await using room = await shop();
  await room.say(UMA, null, 'I want to buy one');
  await room.say(UMA, 'desk', 'a word with the desk');
  await room.say(UMA, null, 'the blue one');
  expect(await heard(room)).toEqual(['desk', 'desk', 'sales']);
});

test('an agent that has left does not keep the conversation', async () => {
  await using room = await shop();
  await room.say(UMA, null, 'I want to buy one');
  const about = { conversation: ROOM as ConversationId, agent: 'sales' as AgentId };
  await room.troupe.command({ command: 'leave', ...about }, UMA);
  expect(await room.troupe.unaddressed(ROOM)).toBe('desk');
  await room.say(UMA, null, 'anybody?');
  expect(await heard(room)).toEqual(['desk', 'desk']);
});

test('a message that is sent again stays with its first addressee', async () => {
  await using room = await shop();
  await room.say(UMA, null, 'I want to buy one', { id: 'm1' });
  await room.say(UMA, null, 'I want to buy one', { id: 'm1' });
  expect(await heard(room)).toEqual(['desk']);
});

test('by a setting the default agent stays the one for all such messages', async () => {
  await using room = await shop('default');
  await room.say(UMA, null, 'I want to buy one');
  expect(await room.troupe.unaddressed(ROOM)).toBe('desk');
  await room.say(UMA, null, 'the blue one');
  expect(await heard(room)).toEqual(['desk', 'desk']);
});
