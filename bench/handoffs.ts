import { RALLY, rallyStart } from './rally.ts';
import { ANA, report, withTroupe } from './support.ts';

/** Two agents that hand a conversation back and forth: model calls, and events that occur twice in a prompt. */
await withTroupe(RALLY, async (troupe) => {
  await troupe.send('rally', { author: ANA, content: 'Hello.', to: ['left', 'right'] });
  await troupe.idle();
  const { head } = await troupe.events('rally');
  await troupe.send('rally', { author: ANA, content: rallyStart, to: ['left'] });
  await troupe.idle();
  const { events } = await troupe.events('rally', { after: head, limit: 5_000 });
  const turns = events.filter(({ kind }) => kind === 'turn.done').length;
  let calls = 0;
  let twice = 0;
  for (const event of events) {
    if (event.kind !== 'turn.done' || !event.turn) continue;
    calls += event.body.steps;
    const prompt = await troupe.promptOf(event.turn);
    const seqs = prompt.messages.flatMap((message) => message.seqs);
    twice += seqs.length - new Set(seqs).size;
  }
  report({ turns, calls, eventsTwice: twice });
});
