import { AGENTS, CONVERSATION, openCompany, textOf } from './company.ts';

/**
 * Usage: `node write-log.ts DIR EVENTS`. Writes a conversation of that many events or a few more, as people and two agents
 * would: of eight messages one is answered, of five answers the second agent gives one. Continues what is there.
 */
const [data = '', size = '10'] = process.argv.slice(2);
const PEOPLE = ['Ana', 'Ben', 'Carla'];
const troupe = await openCompany(data);
let head = await headOf();
for (let number = head; head < Number(size); number += 1) {
  const name = PEOPLE[number % PEOPLE.length] ?? '';
  const asks = number % 8 === 0;
  const to = asks ? [AGENTS[(number / 8) % 5 === 4 ? 1 : 0]] : [];
  const author = { kind: 'user' as const, id: name.toLowerCase(), name };
  const { event } = await troupe.send(CONVERSATION, {
    author,
    to,
    content: textOf(number, 20 + (number % 97)),
  });
  head = event.seq;
  if (asks) await troupe.idle();
}
await troupe.idle();
await troupe.close();

async function headOf(): Promise<number> {
  try {
    return (await troupe.events(CONVERSATION, { after: 0, limit: 1 })).head;
  } catch {
    // There is no such conversation yet.
    return 0;
  }
}
