import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { DEFAULT_POLICY, extractCompaction } from '../../src/context/index.ts';
import type { AgentId, CompactionBody, Event } from '../../src/events/index.ts';
import { agentSays, at, personSays } from '../support/extract-events.ts';
import { peopleOf } from '../../src/context/text/people.ts';

/** Compacts the log in five parts of one length, each on top of the last. */
function afterFive(log: readonly Event[], budget: number, following: readonly Event[] = []): string {
  let body: CompactionBody | null = null;
  const size = Math.ceil(log.length / 5);
  for (let from = 0; from < log.length; from += size) {
    const events = log.slice(from, from + size);
    body = extractCompaction({
      number: (body?.number ?? 0) + 1,
      upTo: events.at(-1)?.seq ?? 1,
      reason: 'over_budget',
      by: 'coder' as AgentId,
      before: Infinity,
      budget,
      events,
      previous: body,
      policy: DEFAULT_POLICY,
      secret: 's',
      people: peopleOf(log),
      count: countTokens,
      following: [...log.slice(from + size), ...following],
    });
  }
  return (body?.quotes ?? []).map(({ text }) => text).join('\n');
}

const talk = (rounds: number) =>
  Array.from({ length: rounds }, (_, n) => [
    personSays(
      `It rained again, and the harbour stayed as empty as on most days of that week (${'a'.repeat(n % 3)}).`,
    ),
    agentSays('That part looks as it did before, and I go on with the one that comes after it.'),
  ]).flat();

test('what an agent decided first is there after five compactions, and so is a number that a person gave', () => {
  const log = at([
    personSays('Please build the ledger.'),
    agentSays(
      'I looked at both ways. I decided to use heron for the ledger, with 4711 entries at most. It is easy to test.',
    ),
    personSays('The mailer of heron listens on port 5433.'),
    ...talk(60),
  ]);
  const left = afterFive(log, 500);
  expect(left).toContain('I decided to use heron for the ledger');
  expect(left).toContain('port 5433');
});

test("a person's last two messages stay whole in a small compaction", () => {
  const last = [
    'Move the report to the archive of the observatory, but keep the chapters on tides and on lamps where they are today.',
    'And write to the keeper of the lamps that his book is due, with the day on which he took it and the name of the clerk.',
  ];
  const log = at([
    personSays('Please build the ledger.'),
    ...talk(30),
    ...last.map((text) => personSays(text)),
  ]);
  const left = afterFive(log, 400);
  for (const text of last) expect(left).toContain(text);
});

const ports = [6101, 6202, 6303, 6404, 6505, 6606, 6707];
const withPorts = [
  personSays('Please build the ledger.'),
  ...ports.flatMap((port) => [personSays(`The mailer of heron listens on port ${port}.`), ...talk(12)]),
];

test('older ones have no such place if the prompt shows two later ones', () => {
  const since = [1, 2].map((n) => personSays(`Row out to the lamp ${n} and look for the keeper.`));
  const left = afterFive(at(withPorts), 380, at(since, 200));
  for (const port of ports) expect(left).toContain(`${port}`);
});

test('names of code that were met once take no room from numbers that a person gave', () => {
  const names = ['heron', 'plover', 'curlew', 'dunlin', 'godwit', 'avocet'];
  const calls = names.map((name) => agentSays(`This is how it is called: ${name}.flush and ${name}.open`));
  const left = afterFive(at([...withPorts, ...calls, ...talk(5)]), 450);
  for (const port of ports) expect(left).toContain(`${port}`);
});

test('remarks that were kept before give way to numbers that a person gives later', () => {
  const [request, ...since] = withPorts;
  const log = at([request as Event, ...talk(20), ...since]);
  const left = afterFive(log, 500);
  for (const port of ports) expect(left).toContain(`${port}`);
});

test('a small compaction keeps the decisions of an agent, however many', () => {
  const names = ['heron', 'plover', 'curlew', 'dunlin', 'godwit', 'avocet', 'knot', 'ruff', 'snipe', 'teal'];
  const log = at([
    personSays('Please build the ledger.'),
    ...names.flatMap((name, at) => [
      ...talk(5),
      agentSays(`I looked at both ways. I decided to use ${name} for the ledger, with ${4711 + at} entries.`),
      personSays(`The mailer of ${name} listens on port ${6101 + at}.`),
    ]),
    ...talk(5),
  ]);
  const left = afterFive(log, 550);
  for (const name of names) expect(left).toContain(`decided to use ${name}`);
});

test("people's remarks leave room for the tables of an agent", () => {
  const names = ['heron', 'plover', 'curlew', 'dunlin', 'godwit', 'avocet', 'knot', 'ruff'];
  const rows = names.flatMap((name, at) =>
    [1, 2, 3, 4].map((place) => `| ${name} ${place} | ${4711 + 10 * at + place} | ok |`),
  );
  const tables = names.map((_, at) => [
    '| place | visits | state |',
    '|---|---|---|',
    ...rows.slice(4 * at, 4 * at + 4),
  ]);
  const log = at([
    personSays('Please build the ledger.'),
    ...tables.flatMap((table) => [...talk(15), agentSays(table.join('\n'))]),
    ...talk(15),
  ]);
  const left = afterFive(log, 1_000);
  for (const row of rows) expect(left).toContain(row);
});
