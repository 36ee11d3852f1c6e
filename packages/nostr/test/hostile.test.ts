import { afterEach, describe, expect, test } from 'vitest';
import { CODER, openStage, type Stage, type StageOptions } from './inbound-stage.ts';
import { FORGERIES } from './forge.ts';
import { startRelay } from './relay.ts';
import { type Behaviour, startHostileRelay } from './relay-process.ts';
import { person } from './sign.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each[Symbol.asyncDispose]();
});

async function keep<T extends AsyncDisposable>(started: Promise<T>): Promise<T> {
  const each = await started;
  opened.push(each);
  return each;
}

const ana = person();
const NAMES_CODER = [['p', CODER.pubkey]];

/** A good relay and a bad one. Resolves when the good one is live. */
async function besides(behaviour: Behaviour, options: Partial<StageOptions> = {}) {
  const good = await keep(startRelay());
  const bad = await keep(startHostileRelay(behaviour));
  const stage = await keep(openStage({ relays: [good, bad], strangers: 'dispatch', ...options }));
  const [goodLink, badLink] = stage.links;
  if (!goodLink || !badLink) throw new Error('two relays have two links');
  await untilHolds(() => expect(stage.inbound.status()[0]?.inbound.state).toBe('live'));
  return { stage, bad, goodLink, badLink };
}

async function expectToWork(stage: Stage): Promise<void> {
  const event = ana.sign({ content: `still here ${Math.random()}`, tags: NAMES_CODER });
  await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.stored()).toContain(event.id));
}

const FORGED = Array.from({ length: 100 }, (_, n) => {
  const event = ana.sign({ content: `forged ${n}`, tags: NAMES_CODER });
  return JSON.stringify(FORGERIES[n % FORGERIES.length]?.forge(event));
});
const GARBAGE = 'garbage';
const ONE = `["EVENT","$sub",${JSON.stringify(ana.sign({ content: 'again and again', kind: 7, tags: NAMES_CODER }))}]`;

describe('a relay is isolated and reported once, without effect on the other, if it', () => {
  test.each<[string, Behaviour, RegExp]>([
    ['sends forged events', { stored: FORGED }, /lies/],
    ['sends invalid JSON forever', { flood: GARBAGE }, /lies/],
    ['sends the same event forever', { flood: ONE }, /floods/],
    ['sends events of an unknown subscription forever', { flood: '["EVENT","x",{}]' }, /floods/],
  ])('%s', async (_name, behaviour, why) => {
    const { stage, badLink } = await besides(behaviour);
    await untilHolds(() => expect(badLink.status().state).toBe('isolated'));
    await expectToWork(stage);
    expect(stage.warnings).toEqual([expect.stringMatching(why)]);
    expect(await stage.stored()).toHaveLength(1);
  });
});

test('a relay that never sends EOSE delays no other', async () => {
  const { stage, badLink } = await besides({ eose: false });
  await expectToWork(stage);
  expect(badLink.status().state).toBe('open');
  expect(stage.inbound.status()[1]?.inbound.state).toBe('catching up');
});

test('a relay that keeps closing the connection costs no events of another', async () => {
  const { stage } = await besides({ dropAfter: 1 });
  for (let n = 0; n < 3; n++) await expectToWork(stage);
});

test('a thread known only to a silent relay is stored without its beginning', async () => {
  const { stage, bad } = await besides({});
  await untilHolds(() => expect(stage.inbound.status()[1]?.inbound.state).toBe('live'));
  await bad.ask({ do: 'behave', how: { eose: false } });
  const reply = ana.sign({ tags: [['e', 'f'.repeat(64), '', 'root'], ...NAMES_CODER] });
  await bad.ask({ do: 'push', frames: [`["EVENT","$sub",${JSON.stringify(reply)}]`] });
  await untilHolds(async () => expect(await stage.stored()).toEqual([reply.id]));
});

test('a relay cannot insert other threads, forgeries or extra events before an event', async () => {
  const root = ana.sign({ content: 'root', at: 1_700_000_000 });
  const inThread = (content: string) =>
    ana.sign({ content, at: 1_700_000_100, tags: [['e', root.id, '', 'root']] });
  const real = inThread('real');
  const stored = [
    ana.sign({ content: 'of another thread' }),
    { ...inThread('forged'), content: 'put into her mouth' },
    real,
    root,
    ana.sign({ kind: 7, content: 'of another kind', tags: [['e', root.id, '', 'root']] }),
  ].map((event) => JSON.stringify(event));
  const { stage, bad } = await besides({});
  await untilHolds(() => expect(stage.inbound.status()[1]?.inbound.state).toBe('live'));
  await bad.ask({ do: 'behave', how: { stored } });
  const mention = ana.sign({ content: 'mention', tags: [['e', root.id, '', 'root'], ...NAMES_CODER] });
  await bad.ask({ do: 'push', frames: [`["EVENT","$sub",${JSON.stringify(mention)}]`] });
  await untilHolds(async () => expect(await stage.stored()).toContain(mention.id));
  const heard = await stage.heard(`nostr:${root.id}`);
  expect(heard.map(({ body }) => body.content)).toEqual(['root', 'real', 'mention']);
  expect(await stage.stored()).toHaveLength(3);
});

test('events of an author over the rate wait and delay no other author; a small excess loses none', async () => {
  const clock = stoppedClock();
  const { stage, goodLink } = await besides({}, { limits: { perAuthorPerSecond: 2 }, clock });
  const loud = Array.from({ length: 26 }, (_, n) => ana.sign({ content: `${n}`, tags: NAMES_CODER }));
  for (const event of loud) await goodLink.publish(event);
  const ben = person().sign({ tags: NAMES_CODER });
  await goodLink.publish(ben);
  await untilHolds(async () => expect(await stage.stored()).toContain(ben.id));
  // The burst is worth ten seconds. The limit allows no more until time passes.
  const allowed = [...loud.slice(0, 20), ben].map(({ id }) => id);
  expect((await stage.stored()).toSorted()).toEqual(allowed.toSorted());
  clock.start();
  await untilHolds(async () => expect(await stage.stored()).toHaveLength(27));
});

/** A clock whose monotonic time stands still until `start`. Sleeps take real time. */
function stoppedClock(): Clock & { start(): void } {
  const stoppedAt = systemClock.monotonic();
  let isRunning = false;
  return {
    ...systemClock,
    monotonic: () => (isRunning ? systemClock.monotonic() : stoppedAt),
    start: () => void (isRunning = true),
  };
}

test('relays that require a login get one, and are followed', async () => {
  const relay = await keep(startRelay({ auth: true }));
  const stage = await keep(
    openStage({
      relays: [relay],
      strangers: 'dispatch',
      authenticate: async (challenge, url) =>
        CODER.sign({
          kind: 22_242,
          content: '',
          tags: [
            ['relay', url],
            ['challenge', challenge],
          ],
        }),
    }),
  );
  await stage.inbound.caughtUp();
  await expectToWork(stage);
});
