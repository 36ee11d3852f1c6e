import { beforeAll, expect, test } from 'vitest';
import { checkRun } from '../../rig/sessions/check-run.ts';
import type { Seen } from '../../rig/sessions/fake-vendor.ts';
import type { Event } from '../../src/events/index.ts';
import { scripted, ANA } from '../http/harness.ts';
import { openTroupe } from '../support/mode.ts';

const AGENT = 'cli';
const [FIRST, SECOND, REPLY] = ['<<said-1>>', '<<said-2>>', '<<reply-1>>'];

let events: readonly Event[];

/** A log with two messages before the agent is asked, in one turn. */
beforeAll(async () => {
  await using troupe = await openTroupe({ agents: [scripted(AGENT, [{ reply: REPLY }])] });
  await troupe.send('c', { author: ANA, content: FIRST, to: [] });
  await troupe.send('c', { author: ANA, content: SECOND, to: [AGENT] });
  await troupe.idle();
  ({ events } = await troupe.events('c'));
});

const request = (text: string, more: Partial<Seen> = {}): Seen => ({
  text,
  isCompaction: false,
  isShortened: false,
  reply: null,
  ...more,
});
const whole = () => request(`${FIRST} ${SECOND}`);
const asksSummary = (text: string) => request(text, { isCompaction: true });
const afterSummary = (text = '') => request(text, { isShortened: true });
const CUT = '[earlier conversation truncated for compaction retry]';
const lost = (number: number, marker: string) =>
  expect.stringContaining(`R2 request ${number}, of c:cli:1, does not show ${marker}`);

test('a request with everything that its turn must see has no findings', () => {
  expect(checkRun(events, AGENT, [whole()])).toEqual([]);
});

test('a missing or repeated message is found', () => {
  expect(checkRun(events, AGENT, [request(SECOND)])).toEqual([lost(0, FIRST)]);
  expect(checkRun(events, AGENT, [request(`${FIRST} ${FIRST} ${SECOND}`)])).toEqual([
    expect.stringContaining(`R1 request 0 shows ${FIRST} 2 times`),
  ]);
});

test("messages in a program's summary need not be shown again", () => {
  expect(checkRun(events, AGENT, [whole(), asksSummary(`${FIRST} ${SECOND}`), afterSummary()])).toEqual([]);
});

test('messages missing from its summary request are reported, unless it says that it had to cut it', () => {
  expect(checkRun(events, AGENT, [whole(), asksSummary(''), afterSummary()])).toEqual([
    lost(2, FIRST),
    lost(2, SECOND),
  ]);
  expect(checkRun(events, AGENT, [whole(), asksSummary(CUT), afterSummary()])).toEqual([]);
});

test('messages that were never sent are reported, whatever it says', () => {
  expect(checkRun(events, AGENT, [request(SECOND), asksSummary(CUT), afterSummary()])).toEqual([
    lost(0, FIRST),
    lost(2, FIRST),
  ]);
});
