import { expect, test } from 'vitest';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';

const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana' };

/** Lines of a transcript, so many that what was folded for one prompt is used for others. */
async function* transcript(lines: number) {
  for (let line = 1; line <= lines; line += 1)
    yield `${JSON.stringify({ role: line % 2 === 1 ? 'user' : 'assistant', content: `line ${line}` })}\n`;
}

test('prompts of a long log are what was sent, in whatever order they are looked at', async () => {
  const agents = [
    { id: 'desk', provider: 'scripted' as const, script: { rules: [{ reply: 'answer {{n}}' }] } },
  ];
  await using troupe = await createTroupe({ agents });
  await troupe.import(transcript(1_200), { conversation: 'c', agent: 'desk', format: 'openai' });
  for (let turn = 1; turn <= 4; turn += 1)
    await troupe.ask('c', { author: ANA, to: ['desk'], content: `Question ${turn}` });
  for (const turn of [4, 3, 1, 2, 4])
    expect(await troupe.promptOf(`c:desk:${turn}`)).toMatchObject({ turn: `c:desk:${turn}`, verified: true });
  const { messages } = await troupe.diff('c:desk:3', 'c:desk:4');
  expect(JSON.stringify(messages.changes)).toContain('Question 4');
});
