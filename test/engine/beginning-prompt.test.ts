import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { AgentId, ConversationId } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ROOM, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

const MESSAGES = 60;
/** Turns of the event loop. */
const ASKED = 40;
const LONG = 'and so it went on, one day after the other. '.repeat(800);

test('a prompt requested while a long turn starts contains all its pending messages', async () => {
  const troupe = await openTroupe({
    agents: [
      {
        id: 'p',
        provider: 'scripted',
        contextWindow: 10_000_000,
        script: { rules: [{ reply: 'I see.' }] },
      },
    ],
  });
  onTestFinished(() => troupe.close());
  await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'Hello.' });
  await troupe.idle();
  await troupe.command(
    { command: 'pause', conversation: ConversationId.parse(ROOM), agent: AgentId.parse('p') },
    UMA,
  );
  for (let number = 1; number <= MESSAGES; number += 1)
    await troupe.send(ROOM, { author: UMA, to: ['p'], content: `Day ${number}: ${LONG}` });
  await troupe.command(
    { command: 'resume', conversation: ConversationId.parse(ROOM), agent: AgentId.parse('p') },
    UMA,
  );
  const asked: Promise<number>[] = [];
  for (let turn = 0; turn < ASKED; turn += 1) {
    asked.push(shownOf(troupe));
    await setImmediate();
  }
  await troupe.idle();
  const shown = await Promise.all(asked);
  expect(shown).toEqual(shown.map(() => MESSAGES));
});

async function shownOf(troupe: Troupe): Promise<number> {
  const { messages } = await troupe.prompt(ROOM, 'p');
  const text = messages.map(({ content }) => content).join('\n');
  return text.match(/Day \d+:/g)?.length ?? 0;
}
