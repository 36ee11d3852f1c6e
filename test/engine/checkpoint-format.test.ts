import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FORMAT, pack } from '../../src/actors/features/checkpoints/checkpoints.ts';
import { foldReadTasks, newReadTasks } from '../../src/actors/log/tasks.ts';
import { createSearchIndex } from '../../src/context/retrieve/search.ts';
import { hashText } from '../../src/context/index.ts';
import type { Event } from '../../src/events/index.ts';
import { foldParticipants, newParticipants } from '../../src/machines/task-fold.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { everyKindLog } from '../../score/every-kind-log.ts';
import { viewOf } from '../support/log-player.ts';
import { AGENTS } from '../support/random-run.ts';

/** The format, and the hash of the folds of the recorded log under it. */
const RECORDED = { format: 1, folds: 'c4391ff26df689654a530d1771e50061' };

/** A conversation of three agents with compactions, recorded. Its events never change; only their folds can. */
const LOG = readFileSync(new URL('recorded-log.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Event);

/** A made-up conversation with every kind of event, because a release reads the folds of another with the same format. */
const EVERY_KIND = everyKindLog(3);

function foldsOf(log: readonly Event[], agents: readonly string[]): unknown[] {
  const participants = newParticipants();
  const tasks = newReadTasks();
  for (const event of log) {
    foldParticipants(participants, event);
    foldReadTasks(tasks, event);
  }
  return [...agents.map((agent) => viewOf(agent, log)), participants, tasks];
}

test('the folds of a recorded log, and of one of every kind, are those of the present checkpoint format', () => {
  const projections = [LOG, EVERY_KIND].map((log) => foldEvents(newProjection('c'), log));
  const segments = [LOG, EVERY_KIND].map((log) => {
    const index = createSearchIndex();
    index.add(log);
    return index.pack(0);
  });
  const folds = [
    ...foldsOf(LOG, AGENTS),
    ...foldsOf(EVERY_KIND, ['ada', 'bob']),
    ...projections,
    ...segments,
  ];
  const made = hashText(pack(folds));
  // A checkpoint of the code before would be read as one of this code, with the old messages or without a new field.
  const advice = `views, task folds, projections or search indexes of old logs are not what they were: raise FORMAT in checkpoints.ts, and record it here with the hash ${made}`;
  expect({ format: FORMAT, folds: made }, advice).toEqual(RECORDED);
});
