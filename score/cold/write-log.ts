import { AGENTS, CONVERSATION, openCompany, textOf } from './company.ts';

/** Usage: `node write-log.ts DIR EVENTS`. Writes a conversation of that many events, or a few more. */
const [data = '', size = '10'] = process.argv.slice(2);
const troupe = await openCompany(data);
const PEOPLE = ['Ana', 'Ben', 'Carla'];
let head = 0;
for (let number = 0; head < Number(size); number += 1) {
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
