import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FORMAT } from '../../src/actors/checkpoints/checkpoint-text.ts';
import { pack } from '../../src/actors/checkpoints/pack.ts';
import { hashText } from '../../src/context/index.ts';
import type { Event } from '../../src/events/index.ts';
import { foldParticipants, newParticipants } from '../../src/machines/participants.ts';
import { foldEvents, newProjection } from '../../src/projection/projection.ts';
import { releaseOf } from '../../src/runtime/release.ts';
import { viewOf } from '../support/log-player.ts';
import { AGENTS } from '../support/random-run.ts';

/** A conversation of three agents with compactions, recorded. Its events never change; only their folds can. */
const LOG = readFileSync(new URL('recorded-log.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Event);

test('the folds of a recorded log are those of the present checkpoint format', () => {
  const participants = newParticipants();
  for (const event of LOG) foldParticipants(participants, event);
  const projection = foldEvents(newProjection('c'), LOG);
  const folds = [...AGENTS.map((agent) => viewOf(agent, LOG)), participants, projection];
  // If only this fails, views, task books or projections of old logs have changed: raise FORMAT and record its hash here, so that
  // checkpoints of the code before are not read.
  expect({ format: FORMAT, folds: hashText(pack(folds)) }).toEqual({
    format: 2,
    folds: '1931b4a321e8e9c11ae8ba949bbdb72e',
  });
});

test('a checkpoint names the release of its code', () => {
  expect(releaseOf()).toMatch(/^\d+\.\d+\.\d+/);
});
