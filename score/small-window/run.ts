import { parseArgs } from 'node:util';
import { startRecorder } from './recorder.ts';
import type { SmallWindowFigures } from './figures.ts';
import { playSmallWindow } from './scene.ts';

/**
 * `npm run score:small-window -- --url http://127.0.0.1:8081/v1 --model NAME`: three agents with a real model server,
 * in windows of 2k and 8k. Prints figures as JSON on stdout and progress on stderr; fails if a goal is missed.
 */
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    model: { type: 'string', default: 'local' },
    window: { type: 'string', default: '2048,8192' },
    turns: { type: 'string', default: '60' },
  },
});
if (!values.url) {
  console.error(
    'npm run score:small-window -- --url BASE_URL [--model NAME] [--window 2048,8192] [--turns 60]',
  );
  process.exit(2);
}

const MAX_SUMMARY_SHARE = 0.25;

function missed(figures: SmallWindowFigures): string[] {
  const { failed, prompts, keeping, compactions, adopted, summaryShare } = figures;
  return [
    failed > 0 ? `${failed} turns failed` : '',
    keeping < prompts ? `${prompts - keeping} prompts lacked a constraint` : '',
    compactions > 1 && adopted < compactions / 2 ? `${adopted} of ${compactions} compactions adopted` : '',
    summaryShare > MAX_SUMMARY_SHARE
      ? `summaries are ${Math.round(summaryShare * 100)} % of all prompts`
      : '',
  ].filter((text) => text !== '');
}

let isMissed = false;
for (const window of values.window.split(',').map(Number)) {
  await using recorder = await startRecorder(values.url);
  const figures = await playSmallWindow({
    recorder,
    model: values.model,
    window,
    turns: Number(values.turns),
    onTurn: (turn) => process.stderr.write(`\rwindow ${window}: turn ${turn + 1}`),
  });
  const goals = missed(figures);
  isMissed ||= goals.length > 0;
  console.error(goals.length > 0 ? `\nmissed: ${goals.join('; ')}` : '\nevery goal met');
  console.log(JSON.stringify(figures));
}
process.exitCode = isMissed ? 1 : 0;
