import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ConversationId } from '../../src/events/index.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { rowOf } from '../../src/library/projection/row.ts';
import { company, ROOM, UMA } from '../support/company.ts';
import { damageEvent } from '../support/mode.ts';

const CHANGED = JSON.stringify({ author: UMA, body: { content: 'pay ten times as much' } });

function scratch(): string {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-integrity-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  return data;
}

/** A company whose second message another program changed; with its warnings and its counts of damage. */
async function afterChange(text = CHANGED) {
  const data = scratch();
  await using before = await company(['p'], { data });
  await before.say(UMA, null, 'one', { id: 'e1' });
  await before.say(UMA, null, 'two', { id: 'e2' });
  await before.say(UMA, 'p', 'three', { id: 'e3' });
  await before.troupe.close();
  await damageEvent(data, { conversation: ROOM, id: 'e2' }, text);
  const warnings: unknown[] = [];
  const counts: unknown[] = [];
  const room = await company(['p'], {
    data,
    onWarning: (error) => warnings.push(error),
    metrics: {
      ...NO_METRICS,
      count: (name, labels) => void (name === 'damaged_events' && counts.push(labels)),
    },
  });
  return { room, warnings, counts };
}

test('a changed event is shown with a mark, warned of once, counted once, and stops nothing', async () => {
  const { room, warnings, counts } = await afterChange();
  await using _ = room;
  await room.say(UMA, 'p', 'four');
  expect(room.sent('p').at(-1)).toBe('user: four');
  expect(room.sent('p')).toContain('user: (changed after it was stored) pay ten times as much');
  const { events } = await room.troupe.events(ROOM);
  await room.troupe.events(ROOM);
  expect(events.filter(({ altered }) => altered).map(({ seq }) => seq)).toEqual([2]);
  expect(rowOf(events[1]!)).toMatchObject({
    level: 'problem',
    summary: '(changed after it was stored) pay ten times as much',
  });
  const altered = warnings.filter((each) => (each as { code?: string }).code === 'event_altered');
  expect(altered).toMatchObject([{ data: { conversation: ROOM, seq: 2, id: 'e2' } }]);
  expect(String(altered)).not.toContain('ten times');
  expect(counts).toEqual([{ damage: 'altered' }]);
});

test('an unreadable event is warned of by the code of damaged stores', async () => {
  const { room, warnings, counts } = await afterChange('{broken');
  await using _ = room;
  await room.say(UMA, 'p', 'four');
  const corrupt = warnings.filter((each) => (each as { code?: string }).code === 'store_corrupt');
  expect(corrupt).toMatchObject([{ data: { conversation: ROOM, seq: 2 } }]);
  expect(String(corrupt)).not.toContain('broken');
  expect(counts).toEqual([{ damage: 'unreadable' }]);
});

test('verify names the changed event, and finds nothing else', async () => {
  const { room } = await afterChange();
  await using _ = room;
  await room.say(UMA, 'p', 'four');
  const { head } = await room.troupe.state(ROOM);
  expect(await room.troupe.verify(ROOM)).toEqual({
    head,
    events: head,
    erased: 0,
    unchained: 0,
    begins: [1],
    problems: [{ kind: 'altered', seq: 2, id: 'e2', reason: 'its content does not match its hash' }],
    problemCount: 1,
    chain: expect.stringMatching(/^[\w-]{43}$/),
    next: null,
  });
  await expect(room.troupe.verify('nowhere')).rejects.toMatchObject({ code: 'conversation_unknown' });
});

test('a fork and an import of a changed conversation are whole: what they hold is as it was appended', async () => {
  const { room } = await afterChange();
  await using _ = room;
  const { troupe } = room;
  await troupe.command(
    { command: 'fork', conversation: ConversationId.parse(ROOM), seq: 3, as: ConversationId.parse('copy') },
    UMA,
  );
  const lines: string[] = [];
  for await (const line of troupe.export(ROOM)) lines.push(line);
  expect(lines.join('')).not.toContain('altered');
  await troupe.import(ReadableStream.from(lines.map((line) => Buffer.from(line))), { conversation: 'again' });
  for (const conversation of ['copy', 'again'])
    expect(await troupe.verify(conversation)).toMatchObject({ begins: [1], problems: [] });
  await troupe.delete(ROOM, { exported: 'none' });
  await room.say(UMA, 'p', 'a new beginning');
  expect(await troupe.verify(ROOM)).toMatchObject({ unchained: 0, begins: [1], problems: [] });
});

test('a redacted event is whole: the hash is that of the stored text', async () => {
  await using room = await company(['p'], {
    definition: { redact: (text: string) => text.replaceAll('4711', '[number]') },
  });
  await room.say(UMA, 'p', 'the number is 4711');
  expect(room.sent('p')).toEqual(['user: the number is [number]']);
  expect((await room.troupe.verify(ROOM)).problems).toEqual([]);
});
