import { systemClock } from '../../src/base/clock.ts';
import type { DocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { NewEventRow } from '../../src/store/driver.ts';
import { openMongoDriver } from '../../src/store/mongo/connect-mongo.ts';
import { messageText, report, stop } from '../support.ts';
import { dropDatabase, newDatabaseUrl } from './bench-database.ts';

/**
 * Drivers that share only the server append to one conversation at the same time, one event after the other. Then the
 * log is checked: every event once, seq 1, 2, 3 ... Argument: number of drivers.
 */
const DRIVERS = Number(process.argv[2] ?? 32);
const EVENTS = 320;
const LOG = { tenant: 'default', conversation: 'crowded' };

const { url } = newDatabaseUrl();
const open = () => openMongoDriver({ url, clock: systemClock, onWarning: stop });
// The first one creates the indexes.
const drivers: DocumentDriver[] = [await open()];
for (let index = 1; index < DRIVERS; index++) drivers.push(await open());

function rowOf(id: string, index: number): NewEventRow {
  const facts = { kind: 'message', to: ['agent'], hash: id, tokens: 20, turn: null, at: systemClock.now() };
  return { ...LOG, ...facts, id, data: JSON.stringify({ content: messageText(index) }) };
}

const start = performance.now();
await Promise.all(
  drivers.map(async (driver, which) => {
    for (let index = 0; index < EVENTS / DRIVERS; index++)
      await driver.append([rowOf(`${which}-${index}`, index)]);
  }),
);
const seconds = (performance.now() - start) / 1_000;

const rows = await drivers[0]!.readEvents({ ...LOG, after: 0, limit: 10 * EVENTS });
const isDense = rows.every(({ seq }, index) => seq === index + 1);
const isWhole = rows.length === EVENTS && new Set(rows.map(({ id }) => id)).size === EVENTS;
const sum = (value: (driver: DocumentDriver) => number) =>
  drivers.reduce((total, driver) => total + value(driver), 0);
const figures = {
  appendsPerSecond: EVENTS / seconds,
  retriesPerAppend: sum(({ stats }) => stats.clashes) / EVENTS,
  mostRetries: Math.max(...drivers.map(({ stats }) => stats.mostClashes)),
  brokenLogs: isDense && isWhole ? 0 : 1,
};
await Promise.all(drivers.map((driver) => driver.close()));
await dropDatabase(url);
report(figures);
