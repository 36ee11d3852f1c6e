import { expect, test } from 'vitest';
import { followConversation, type Frame } from '../../src/library/asking/follow.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { ConversationId } from '../../src/events/index.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';

const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana' };
const AGENTS = [{ id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'ok' }] } }];

test('a log that was begun anew and grows while it is compared is told from its first event on', async () => {
  await using troupe = await openTroupe({ agents: AGENTS }, { data: ':memory:' });
  const say = (content: string) => troupe.send('c1', { author: ANA, content });
  for (const content of ['1', '2', '3']) await say(content);
  let isGrown = false;
  const growing: Troupe = {
    ...troupe,
    async events(conversation, query) {
      const page = await troupe.events(conversation, query);
      // The one event that is compared is read alone.
      if (query?.limit === 1 && !isGrown) {
        isGrown = true;
        for (const content of ['anew 2', 'anew 3', 'anew 4']) await say(content);
      }
      return page;
    },
  };
  const stop = new AbortController();
  const options = { troupe: growing, clock: systemClock, signal: stop.signal };
  const told: string[] = [];
  for await (const frame of followConversation('c1' as ConversationId, 0, options)) {
    const words = wordsOf(frame);
    if (words !== null) told.push(words);
    if (words === '3') {
      await troupe.delete('c1', { exported: 'none' });
      await say('anew 1');
    }
    if (words === 'anew 4') break;
  }
  stop.abort();
  expect(isGrown).toBe(true);
  expect(told).toEqual(['1', '2', '3', 'reset', 'anew 1', 'anew 2', 'anew 3', 'anew 4']);
});

function wordsOf(frame: Frame): string | null {
  if (frame.type === 'reset') return 'reset';
  return frame.type === 'event' && frame.event.kind === 'message' ? frame.event.body.content : null;
}
