import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { defineTool, defineTroupe } from '../../src/index.ts';
import {
  person,
  reachedGoal,
  said,
  scoreScenarios,
  turns,
  writeScores,
} from '../../packages/evals/src/index.ts';

/** Runs, loads or opens something if it is treated as markup. */
export const MARKUP = `<img src=x onerror="window.__xss=1"><script>window.__xss=2</script>"'>`;

export const SCENARIO = `a parcel ${MARKUP}`;

/** Scores of the same scenario, before and after, with what was kept of their runs. */
export interface KeptScores extends Disposable {
  before: string;
  after: string;
  /** Conversations of the runs, the same on both sides. */
  conversations: readonly string[];
}

/** The desk looks a parcel up; after the change it says another day, and thanks. */
export async function keptScores(repeats = 1): Promise<KeptScores> {
  const root = mkdtempSync(path.join(tmpdir(), 'troupe-kept-'));
  const [before, after] = [path.join(root, 'before'), path.join(root, 'after')];
  const scenario = { name: SCENARIO, users: person('mia').says(`Where is it? ${MARKUP}`) };
  const scores = { 'it is Monday': reachedGoal(said('desk', 'Monday')), turns };
  const first = await scoreScenarios(deskSaying('It comes on Monday.'), [scenario], {
    scores,
    repeats,
    keep: before,
  });
  const second = await scoreScenarios(deskSaying(`It comes on Friday. ${MARKUP}`), [scenario], {
    scores,
    repeats,
    keep: after,
  });
  writeScores(before, first);
  writeScores(after, second, first);
  const conversations = first.scenarios.flatMap(({ runs }) =>
    runs.flatMap(({ conversation }) => conversation ?? []),
  );
  return {
    before,
    after,
    conversations,
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

function deskSaying(reply: string) {
  const track = defineTool({
    name: 'track',
    description: 'Finds a parcel.',
    schema: { type: 'object', properties: { parcel: { type: 'string' } } },
    idempotent: true,
    run: () => `in Bern ${MARKUP}`,
  });
  const rules = [{ when: { step: 1 }, calls: [{ name: 'track', args: { parcel: '4711' } }] }, { reply }];
  return defineTroupe({
    tools: [track],
    agents: [{ id: 'desk', tools: ['track'], provider: 'scripted', script: { rules } }],
    defaults: { respondWhenUnaddressed: 'desk' },
  });
}
