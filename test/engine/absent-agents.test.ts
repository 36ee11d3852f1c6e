import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { company, ROOM, UMA } from '../support/company.ts';

test('an agent has a state from the first message to it on, and no other agent has one', async () => {
  await using room = await company(['p', 'q']);
  await room.say(UMA, null, 'hello all');
  expect(await room.troupe.actors(ROOM)).toEqual([]);
  await room.say(UMA, 'p', 'hello');
  expect((await room.troupe.actors(ROOM)).map(({ agent }) => agent)).toEqual(['p']);
});

test('the state of an agent that is no longer defined stays, and it continues when it is defined again', async () => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-absent-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  await using before = await company(['p', 'q'], { data });
  await before.say(UMA, 'p', 'one');
  await before.troupe.close();

  await using without = await company(['q'], { data });
  await without.say(UMA, 'q', 'two');
  expect((await without.troupe.actors(ROOM)).map(({ agent }) => agent)).toContain('p');
  await without.troupe.close();

  await using again = await company(['p', 'q'], { data });
  await again.say(UMA, 'p', 'three');
  const sent = again.sent('p').join('\n');
  for (const words of ['one', 'p answers 1', 'two', 'q answers 1', 'three'])
    expect(sent.split(words)).toHaveLength(2);
});
