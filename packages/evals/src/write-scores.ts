import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Scorecard } from './scorecard.ts';
import { scoresJunit } from './scores-junit.ts';
import { scoresTable } from './scores-table.ts';

/** Scores as they are stored, and read again by `readScorecard`. */
export function scoresJson(scores: Scorecard): string {
  return `${JSON.stringify(scores, null, 2)}\n`;
}

/** Writes `scores.json`, `scores.xml` for a CI and `scores.md` for people into a folder, with a baseline: what has changed. */
export function writeScores(folder: string, scores: Scorecard, before?: Scorecard): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'scores.json'), scoresJson(scores));
  writeFileSync(path.join(folder, 'scores.xml'), scoresJunit(scores, before));
  writeFileSync(path.join(folder, 'scores.md'), `${scoresTable(scores, before)}\n`);
}
