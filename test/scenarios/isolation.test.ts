import { expect, test } from 'vitest';
import { UMA } from '../support/company.ts';
import { scripted, scriptedRoom } from './stage.ts';

test('an agent is sent nothing of its other conversations, nor who spoke there', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  const { troupe } = room;
  const ben = { kind: 'user', id: 'ben', name: 'Ben' } as const;
  await troupe.send('one', { author: ben, to: ['a'], content: 'The harbour opens at seven.' });
  await troupe.idle();
  await troupe.send('two', { author: UMA, to: ['a'], content: 'When does the harbour open?' });
  await troupe.idle();
  const { messages } = await troupe.promptOf('two:a:1');
  const text = messages.map(({ content }) => content).join('\n');
  expect(text).toContain('When does the harbour open?');
  expect(text).not.toMatch(/seven|Ben/);
});
