import { expect, test } from 'vitest';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import type { Event } from '../../src/events/index.ts';
import { schedulesOf } from '../../src/library/config/coordination-settings.ts';
import { schedules as feature } from '../../src/actors/features/schedules/feature.ts';
import { createParticipantsCache } from '../../src/actors/conversations/messages.ts';
import { scripted } from '../http/harness.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const SCHEDULE = {
  name: 'report',
  cron: '0 * * * *',
  conversation: 'c',
  to: 'bo',
  content: 'report, please',
};

function schedules(...more: object[]) {
  return schedulesOf(
    parseTroupe({ agents: [scripted('bo', [{ reply: 'ok' }])], schedules: [{ ...SCHEDULE, ...more[0] }] })
      .schedules ?? [],
  );
}

/** One check of the schedules by one process. */
async function look({ deps }: Stage, ...more: object[]): Promise<void> {
  const { schedules: due } = feature.open({ ...deps, version: '', schedules: schedules(...more) });
  await due?.fire(deps, createParticipantsCache(deps.log));
}

function said(events: readonly Event[]): Event[] {
  return events.filter(({ id }) => id.startsWith('schedule:'));
}

async function stageAt(options: { driver?: Awaited<ReturnType<typeof openDriver>> } = {}): Promise<Stage> {
  return openStage({ agents: [{ id: 'bo', model: inOrder(says('here it is')) }], ...options });
}

test('a due message is sent once, to its agent, in the name of the runtime', async () => {
  const stage = await stageAt();
  await look(stage);
  expect(await stage.events('c')).toEqual([]);
  await stage.clock.advance(HOUR_MS);
  await look(stage);
  await look(stage);
  await stage.quiet();
  const [event, ...others] = said(await stage.events('c'));
  expect(others).toEqual([]);
  const due = Math.floor(stage.clock.now() / HOUR_MS) * HOUR_MS;
  expect(event).toMatchObject({
    id: `schedule:report:${due / MINUTE_MS}`,
    author: { kind: 'system' },
    to: ['bo'],
    body: { content: 'report, please' },
  });
  const replies = (await stage.events('c')).filter(
    ({ kind, author }) => kind === 'message' && author.id === 'bo',
  );
  expect(replies).toHaveLength(1);
  expect(await stage.check('c')).toEqual([]);
});

test('of several times missed only the last is sent, and none twice', async () => {
  const stage = await stageAt();
  await look(stage);
  await stage.clock.advance(5 * HOUR_MS);
  await look(stage);
  await look(stage);
  expect(said(await stage.events('c'))).toHaveLength(1);
  await stage.clock.advance(HOUR_MS);
  await look(stage);
  expect(said(await stage.events('c'))).toHaveLength(2);
});

test('two processes that check at once send it once', async () => {
  const driver = await openDriver();
  const [one, two] = [await stageAt({ driver }), await stageAt({ driver })];
  await look(one);
  for (const { clock } of [one, two]) await clock.advance(HOUR_MS);
  await Promise.all([look(one), look(two), look(one), look(two)]);
  expect(said(await one.events('c'))).toHaveLength(1);
  expect([one.warnings, two.warnings]).toEqual([[], []]);
});

test('a process that ends between sending and storing its mark sends nothing twice', async () => {
  const stage = await stageAt();
  await look(stage);
  await stage.clock.advance(HOUR_MS);
  const compareAndSet = stage.store.compareAndSet.bind(stage.store);
  stage.deps.store.compareAndSet = () => Promise.reject(new Error('the process is gone'));
  await look(stage);
  stage.deps.store.compareAndSet = compareAndSet;
  await look(stage);
  expect(said(await stage.events('c'))).toHaveLength(1);
  expect(stage.warnings).toHaveLength(1);
});

test('an archived conversation gets no scheduled messages', async () => {
  const stage = await stageAt();
  await stage.say('c', 'x', []);
  await stage.troupe.command({ command: 'archive', conversation: 'c' as never }, ANA);
  await look(stage);
  await stage.clock.advance(HOUR_MS);
  await look(stage);
  expect(said(await stage.events('c'))).toEqual([]);
});

test('the sweeper fires the schedules of a definition', async () => {
  const stage = await openStage({
    agents: [{ id: 'bo', model: inOrder(says('ok')) }],
    schedules: schedules({ cron: '* * * * *' }),
  });
  for (let i = 0; i < 40; i++) await stage.clock.advance(5_000);
  await stage.quiet();
  expect(said(await stage.events('c')).length).toBeGreaterThanOrEqual(2);
});

test('a schedule follows the clocks of its time zone', () => {
  const [berlin] = schedules({ cron: '0 9 * * *', timezone: 'Europe/Berlin' });
  const at = (text: string) => new Date(text).getTime();
  expect(berlin?.lastBy(at('2026-01-15T12:00:00Z'))).toBe(at('2026-01-15T08:00:00Z'));
  expect(berlin?.lastBy(at('2026-07-15T12:00:00Z'))).toBe(at('2026-07-15T07:00:00Z'));
  expect(berlin?.lastBy(at('2026-07-15T07:00:00Z'))).toBe(at('2026-07-15T07:00:00Z'));
});

test.each([
  [{ cron: '0 0 30 2 *' }, 'schedules[0].cron: "0 0 30 2 *" never occurs'],
  [{ cron: '* * *' }, 'schedules[0].cron:'],
  [{ cron: '* * * * * *' }, 'schedules[0].cron:'],
  [{ timezone: 'Mars/Olympus' }, 'schedules[0].timezone: "Mars/Olympus" is not a time zone'],
  [{ to: 'nobody' }, 'schedules[0].to: there is no agent "nobody"'],
  [{ name: 'a b' }, 'schedules[0].name:'],
])('%j is refused with its path', (wrong, problem) => {
  expect(() => schedules(wrong)).toThrow(problem);
});
