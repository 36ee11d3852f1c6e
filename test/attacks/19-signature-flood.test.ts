import { expect } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { readFrame } from '../../packages/nostr/src/relay-socket.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { attack } from './attack.ts';
import { ANA, NAMES_BO, openNostrStage } from './nostr-stage.ts';
import { ANA as UMA, statusOf } from './stage.ts';

const PER_SECOND = 50;
const FLOOD = 2_000;

/** Events whose ids and signatures only the expensive check can find invalid. */
function forged(count: number, at: number): object[] {
  const event = ANA.sign({ content: 'x', tags: NAMES_BO, at });
  return Array.from({ length: count }, (_, n) => ({ ...event, id: n.toString(16).padStart(64, '0') }));
}

attack(
  19,
  'signature checks are limited per second and follow all cheap checks, and no other caller waits',
  async (refused) => {
    const clock = createFakeClock();
    await using nostr = await openNostrStage(
      { limits: { verificationsPerSecond: PER_SECOND, perAuthorPerSecond: 10_000 } },
      clock,
    );
    const { stage, intake, refusals } = nostr;
    const before = await stage.state();

    // Events that cheap checks refuse cost no signature check, however many arrive.
    const at = Math.floor(clock.now() / 1_000);
    const cheap = ANA.sign({ content: 'x', at });
    for (let n = 0; n < FLOOD; n++) await intake.take({ ...cheap, id: n.toString(16).padStart(64, '0') });
    expect(refusals.filter((reason) => reason === 'unasked')).toHaveLength(FLOOD);
    const large = Buffer.from(JSON.stringify(['EVENT', 's', { ...cheap, content: 'x'.repeat(200_000) }]));
    expect(readFrame(large, 131_072)).toEqual({ type: 'refused', reason: 'size' });
    refused('size and shape before any hash');
    refusals.length = 0;

    let isOver = false;
    const flooding = (async () => {
      for (const event of forged(FLOOD, at)) {
        if (isOver) return;
        await intake.take(event);
      }
    })();
    const checked: number[] = [];
    for (let second = 0; second < 4; second++) {
      const from = refusals.length;
      for (let step = 0; step < 50; step++) await clock.advance(20);
      checked.push(refusals.length - from);
    }
    // The first second also has the burst of one second.
    expect(checked[0]).toBeLessThanOrEqual(2 * PER_SECOND + 1);
    for (const count of checked.slice(1)) {
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThanOrEqual(PER_SECOND + 1);
    }
    expect(new Set(refusals)).toEqual(new Set(['id']));
    refused(`at most ${PER_SECOND} checks a second`);

    // Meanwhile others get answers, without any trace of the flood. The clock stands still: no signature is checked.
    const before20 = refusals.length;
    const cpuMs = await cpuMsOf(async () => {
      for (let n = 0; n < 20; n++)
        expect(
          statusOf(
            await stage.ask('/api/conversations/other/events', { body: { author: UMA, content: `${n}` } }),
          ),
        ).toBe('201');
    });
    expect(refusals.length).toBe(before20);
    expect(cpuMs).toBeLessThan(2_000);
    isOver = true;
    nostr.close();
    await clock.advance(60_000);
    await flooding;
    const { worlds } = (await stage.state()) as { worlds: { conversations: { id: string }[] }[] };
    expect(worlds[0]?.conversations.map(({ id }) => id)).toEqual(['other']);
    expect(worlds.slice(1)).toEqual((before as { worlds: unknown[] }).worlds.slice(1));
    expect(stage.vendor.requests).toEqual([]);
    refused('id');
  },
);
