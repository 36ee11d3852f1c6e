import { describe, expect, onTestFinished, test } from 'vitest';
import { ActorAddress, turnId } from '../../../src/events/index.ts';
import type { Broadcast, Notice } from '../../../src/queue/broadcast.ts';
import { createOutage } from '../../../src/queue/outage.ts';
import { createParts, createPostgresBroadcast, partsOf } from '../src/queue/postgres-broadcast.ts';
import { broadcastConformance } from '../../testing/src/broadcast-conformance.ts';
import { POSTGRES_URL } from './postgres-stage.ts';
import { until } from '../../../test/queue/connections.ts';
import { openQueueStage } from './postgres-queue-stage.ts';

const A = ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent: 'a' });
const SKIPPED = POSTGRES_URL ? '' : ' (skipped: no PostgreSQL)';

async function openMembers(count: number): Promise<Broadcast[]> {
  const stage = await openQueueStage(POSTGRES_URL);
  onTestFinished(() => stage[Symbol.asyncDispose]());
  const { onWarning, channels } = stage;
  const outage = createOutage(onWarning, { where: 'broadcast', away: 'away', back: 'back' });
  const members = await Promise.all(Array.from({ length: count }, () => stage.join()));
  return members.map((member) =>
    createPostgresBroadcast({ ...member, channel: channels.notices, outage, onWarning }),
  );
}

describe.skipIf(!POSTGRES_URL)(`the PostgreSQL broadcast keeps the contract${SKIPPED}`, () => {
  for (const each of broadcastConformance(openMembers)) test(`${each.group} ${each.name}`, () => each.run());
});

test.skipIf(!POSTGRES_URL)(`a notice longer than a payload arrives whole${SKIPPED}`, async () => {
  const [speaker, hearer, third] = await openMembers(3);
  const heard: Notice[] = [];
  hearer?.subscribe((notice) => heard.push(notice));
  const delta = (text: string, by: string): Notice => ({
    type: 'text',
    ...A,
    turn: turnId(A, by === 'speaker' ? 1 : 2),
    attempt: 1,
    step: 1,
    round: 1,
    index: 0,
    text,
  });
  const long = 'Grüße \u{1F600}\0\uD800 "quoted" '.repeat(20_000);
  speaker?.publish(delta(long, 'speaker'));
  third?.publish(delta(long, 'third'));
  await until(() => heard.length === 2);
  for (const notice of heard) expect(notice.type === 'text' && notice.text === long).toBe(true);
  for (const each of [speaker, hearer, third]) await each?.close();
});

describe('parts of a message', () => {
  test.each([
    ['ASCII', 'a'.repeat(50_000)],
    ['pairs of surrogates', '\u{1F600}'.repeat(20_000)],
    ['three bytes each', '\u20AC'.repeat(20_000)],
    ['one odd character first', `a${'\u{1F600}'.repeat(20_000)}`],
  ])('are small enough, and joined the text: %s', (_, text) => {
    const parts = partsOf(text);
    for (const part of parts) {
      expect(Buffer.byteLength(part)).toBeLessThan(7_900);
      expect(part.isWellFormed()).toBe(true);
    }
    const joiner = createParts();
    const texts = parts.map((part, at) => joiner.join(`p ${at + 1}/${parts.length} ${part}`));
    expect(texts.pop()).toBe(text);
    expect(texts.every((each) => each === null)).toBe(true);
  });

  test('a message that lacks its beginning or a part is dropped, and the next is whole', () => {
    const joiner = createParts();
    expect(joiner.join('p 2/3 b')).toBeNull();
    expect(joiner.join('p 1/3 a')).toBeNull();
    expect(joiner.join('p 3/3 c')).toBeNull();
    expect(joiner.join('p 1/1 whole')).toBe('whole');
    expect(joiner.join('forged')).toBe('');
  });
});
