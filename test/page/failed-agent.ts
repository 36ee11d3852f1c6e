import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openStage, type PageStage, type Play, type StageOptions } from './stage.ts';

/** A conversation whose critic has failed: its record is unreadable, as after a manual edit or a disk error. */
export const FAILED_AGENT = 'failed-agent';

/** Every stage begins at the same time, so this one continues later than the stage before it. */
const AFTER_MS = 60_000;
const UNREADABLE = '{"turnNo":';

/** A stage on which only `FAILED_AGENT` has been played. */
export async function openStageWithFailedAgent(play: Play, options: StageOptions = {}): Promise<PageStage> {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-page-'));
  const before = await openStage(play, { ...options, data });
  await before.play(FAILED_AGENT, ['critic'], 'Good morning. Is there anything missing?');
  await before[Symbol.asyncDispose]();
  damage(data);
  const stage = await openStage(play, { ...options, data });
  stage.clock.pass(AFTER_MS);
  await stage.play(FAILED_AGENT, ['critic', 'orchestrator'], 'And now, is there anything missing?');
  const dispose = stage[Symbol.asyncDispose];
  return Object.assign(stage, {
    async [Symbol.asyncDispose]() {
      await dispose();
      rmSync(data, { recursive: true, force: true });
    },
  });
}

function damage(data: string): void {
  const database = new DatabaseSync(path.join(data, 'troupe.db'));
  const { changes } = database.prepare('UPDATE actors SET data = ?').run(UNREADABLE);
  database.close();
  if (Number(changes) !== 1) throw new Error(`${changes} actors to damage, expected one`);
}
