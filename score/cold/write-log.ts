import { AGENTS, CONVERSATION, openCompany, textOf } from './company.ts';

/**
 * Usage: `node write-log.ts DIR EVENTS EVERY`. Writes a conversation of that many events or a few more, as people and two agents
 * would: of `EVERY` messages one is answered, of five answers the second agent gives one. Continues what is there.
 */
const [data = '', size = '10', every = '8'] = process.argv.slice(2);
const EVERY = Number(every);
const PEOPLE = ['Ana', 'Ben', 'Carla'];
const troupe = await openCompany(data);
let head = await headOf();
for (let number = Math.ceil(head / EVERY) * EVERY; head < Number(size); number += EVERY) {
  const sent = await Promise.all(Array.from({ length: EVERY - 1 }, (_, at) => say(number + 1 + at)));
  const asked = await say(number, [AGENTS[(number / EVERY) % 5 === 4 ? 1 : 0]]);
  head = Math.max(asked, ...sent);
  await troupe.idle();
}
await troupe.idle();
await troupe.close();

async function say(number: number, to: readonly string[] = []): Promise<number> {
  const name = PEOPLE[number % PEOPLE.length] ?? '';
  const { event } = await troupe.send(CONVERSATION, {
    author: { kind: 'user', id: name.toLowerCase(), name },
    to: [...to],
    content: textOf(number, 20 + (number % 97)),
  });
  return event.seq;
}

async function headOf(): Promise<number> {
  try {
    return (await troupe.events(CONVERSATION, { after: 0, limit: 1 })).head;
  } catch {
    // There is no such conversation yet.
    return 0;
  }
}
