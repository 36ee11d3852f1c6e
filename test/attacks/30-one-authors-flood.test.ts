import { expect } from 'vitest';
import { atOnce } from '../../src/context/index.ts';
import { collectFactsSteps } from '../../src/context/extract/facts.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Event } from '../../src/events/index.ts';
import { attack } from './attack.ts';
import { ACME, ANA, EVE, only, openStage, ZETA } from './stage.ts';

const LINE =
  'As was agreed, the books of the harbour office lie in /srv/books/ledger.ts:12; you must never pay ORD-123456 unasked. What is next? [note] TODO: fix it.\n';
const MESSAGES = 90;
const CHARS = 950_000;
const FLOOD = LINE.repeat(Math.ceil(CHARS / LINE.length)).slice(0, CHARS);
/** Maximum of characters read without a break: one long text up to its limit, and the size of a slice. */
const MOST_IN_ONE_GO = 2 * 65_536;
const SUMMARY =
  'Ana greeted @bo. Eve said much of the harbour office and its books, again and again; nothing was decided.';

/** Reports when long work yields to the event loop. */
function countingClock(): { clock: Clock; pauses: () => number; onPause: (listener: () => void) => void } {
  let pauses = 0;
  let listener = () => {};
  const sleep: Clock['sleep'] = (ms, signal) => {
    if (ms === 0) {
      pauses += 1;
      listener();
    }
    return systemClock.sleep(ms, signal);
  };
  return {
    clock: { ...systemClock, sleep },
    pauses: () => pauses,
    onPause: (given) => (listener = given),
  };
}

attack(30, '90 large messages of one author delay no other tenant, and are answered', async (refused) => {
  const { clock, pauses, onPause } = countingClock();
  await using stage = await openStage({
    agents: ['bo', 'cy'],
    answer: ({ messages }) => ({
      text: messages[0]?.content.startsWith('You keep the record') ? SUMMARY : 'fine',
    }),
    troupe: { clock },
  });
  const acme = stage.troupe.forTenant(ACME);
  const zeta = stage.troupe.forTenant(ZETA);
  await acme.send('c', { author: ANA, content: 'hello', to: ['bo'] });
  await stage.troupe.idle();
  for (let n = 0; n < MESSAGES; n++) await acme.send('c', { author: EVE, content: `${n} ${FLOOD}` });

  const before = pauses();
  let asked = null as Promise<unknown> | null;
  let answeredAfter = Infinity;
  const unwatch = zeta.watch((note) => {
    if (note.type === 'event' && note.event.kind === 'turn.done') answeredAfter = pauses() - before;
  });
  // The other tenant speaks while the flood is being read.
  onPause(() => {
    if (pauses() - before >= 10) asked ??= zeta.send('d', { author: ANA, content: 'and me?', to: ['cy'] });
  });
  const { event: asking } = await acme.send('c', { author: ANA, content: 'what now?', to: ['bo'] });
  await stage.troupe.idle();
  await asked;
  await stage.troupe.idle();
  const needed = pauses() - before;
  unwatch();

  const { events } = await acme.events('c', { after: asking.seq - 1, limit: 1_000 });
  expect(only(events, 'compaction')).toHaveLength(1);
  expect(only(events, 'turn.failed')).toEqual([]);
  expect(only(events, 'message').at(-1)).toMatchObject({ author: { id: 'bo' }, body: { content: 'fine' } });
  refused('the flooded agent answers');
  expect(needed).toBeGreaterThan(100);
  expect(answeredAfter).toBeLessThan(needed);
  refused('another tenant gets its answer meanwhile');
});

attack(30, 'a flood is read up to a limit, in slices', async (refused) => {
  const flood = (messages: number, chars: number): Event[] =>
    Array.from({ length: messages }, (_, n) => said(n + 1, EVE, `${n} ${FLOOD.slice(0, chars)}`));
  const anas = said(0, ANA, 'You must never pay anybody without my approval.');
  for (const events of [flood(200, CHARS), flood(20_000, 1_000)]) {
    let [sum, most] = [0, 0];
    const steps = collectFactsSteps([anas, ...events], null);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        // An author of few messages is read completely, however much others say.
        expect(step.value.constraints[0]).toMatchObject({ by: { id: 'ana' } });
        break;
      }
      sum += step.value;
      most = Math.max(most, step.value);
    }
    expect(most).toBeLessThanOrEqual(MOST_IN_ONE_GO);
    expect(sum).toBeLessThan(16 * 1_048_576);
  }
  expect(atOnce(collectFactsSteps([anas], null)).constraints).toHaveLength(1);
  refused('read within limits');
});

function said(seq: number, author: typeof ANA, content: string): Event {
  const place = { tenant: 'default', conversation: 'c', seq, at: 0, tokens: 1, id: `e${seq}`, to: [] };
  return { ...place, author, kind: 'message', body: { content } } as unknown as Event;
}
