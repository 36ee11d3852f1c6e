import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FORMAT, pack } from '../../src/actors/features/checkpoints/checkpoints.ts';
import { foldReadTasks, newReadTasks } from '../../src/actors/log/tasks.ts';
import { hashText } from '../../src/context/index.ts';
import type { Event } from '../../src/events/index.ts';
import { foldParticipants, newParticipants } from '../../src/machines/task-fold.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { releaseOf } from '../../src/library/runtime/open-engine.ts';
import { viewOf } from '../support/log-player.ts';
import { AGENTS } from '../support/random-run.ts';

/** The format, and the hash of the folds of the recorded log under it. */
const RECORDED = { format: 1, folds: '35f19f20e153a3b424874a1190f704c7' };

/** A conversation of three agents with compactions, recorded. Its events never change; only their folds can. */
const LOG = readFileSync(new URL('recorded-log.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Event);

test('the folds of a recorded log are those of the present checkpoint format', () => {
  const participants = newParticipants();
  const tasks = newReadTasks();
  for (const event of LOG) {
    foldParticipants(participants, event);
    foldReadTasks(tasks, event);
  }
  const projection = foldEvents(newProjection('c'), LOG);
  const folds = [...AGENTS.map((agent) => viewOf(agent, LOG)), participants, tasks, projection];
  const made = hashText(pack(folds));
  // A checkpoint of the code before would be read as one of this code, with the old messages or without a new field.
  const advice = `views, task folds or projections of old logs are not what they were: raise FORMAT in checkpoint-text.ts, and record it here with the hash ${made}`;
  expect({ format: FORMAT, folds: made }, advice).toEqual(RECORDED);
});

test('a checkpoint names the release of its code', () => {
  expect(releaseOf()).toMatch(/^\d+\.\d+\.\d+/);
});
